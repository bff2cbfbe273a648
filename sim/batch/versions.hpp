// STAGELINE_VERSIONS: a function is compiled for each instruction set, and the version chosen when
// the program is loaded. Only functions with external linkage have versions.
#pragma once

// The resolvers of such versions run before a sanitizer is ready.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(undefined_behavior_sanitizer)
#define STAGELINE_VERSIONS __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define STAGELINE_VERSIONS __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef STAGELINE_VERSIONS
#define STAGELINE_VERSIONS
#endif
