/* Gives files to a target, for compilers without a fuzzer: `TARGET FILE...`. */
#include "target.h"

int main(int count, char **names)
{
    for (int k = 1; k < count; k++) {
        FILE *file = fopen(names[k], "rb");
        HOLDS(file && fseek(file, 0, SEEK_END) == 0);
        long size = ftell(file);
        uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
        rewind(file);
        HOLDS(fread(data, 1, (size_t)size, file) == (size_t)size);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        free(data);
        fclose(file);
    }
    return 0;
}
