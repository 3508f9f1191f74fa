/* Runs SEBs of emulated PEs on some threads, as an emulator does, and prints their timelines. */
#ifndef STUB_EMULATOR_H
#define STUB_EMULATOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Run `sebs` SEBs on each of `pes` PEs; each of `threads` threads goes round PEs of its own. Before
 * that PE 0 runs once without a SEB, which is given as -1. */
void emulate(int pes, int sebs, int threads, void (*run)(int pe, int seb));

#ifdef __cplusplus
}
#endif

#endif
