// Precompiled for the files that include ATen: reading it is 10 s of the 12 s that each of them
// would take to compile. (No #pragma once: g++ warns of it in a file that it compiles itself.)
#include <ATen/ATen.h>
