// BigSim's blue.h, of which blue_impl.h needs declarations, for tests: empty.
