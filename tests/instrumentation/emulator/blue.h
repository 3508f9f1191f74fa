// What tracebigsim.h needs of BigSim's blue.h, for tests.
#ifndef STUB_BLUE_H
#define STUB_BLUE_H

extern "C" void BgMark(const char *text);

int CkMyPe();

#endif
