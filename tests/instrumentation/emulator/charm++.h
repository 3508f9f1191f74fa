// What tracebigsim.h needs of Charm++'s charm++.h, for tests.
#ifndef STUB_CHARM_H
#define STUB_CHARM_H

#include "conv-config.h"

extern "C" void BgMark(const char *text);

int CkMyPe();

#endif
