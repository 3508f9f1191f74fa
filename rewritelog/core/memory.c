/* Memory that has been freed. The C library keeps it for later, although large arrays that follow
   the many small ones of loading cannot use it. */
#include "core.h"

#ifdef __linux__
#include <features.h>
#endif

#ifdef __GLIBC__
#include <malloc.h>
#endif

void give_back(int64_t kept_bytes)
{
#ifdef __GLIBC__
    malloc_trim((size_t)kept_bytes);
#else
    (void)kept_bytes;
#endif
}
