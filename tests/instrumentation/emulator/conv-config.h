/* What Charm++'s conv-config.h says in a build with the BigSim emulator, for tests. */
#undef CMK_BIGSIM_CHARM
#define CMK_BIGSIM_CHARM 1
