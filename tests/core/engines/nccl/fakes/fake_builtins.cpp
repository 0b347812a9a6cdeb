// What the fake NVRTC opens by its name, as NVRTC 13 does: it is found only where it was loaded before.
extern "C" int fake_builtins() { return 1; }
