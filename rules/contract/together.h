// Loops over rows that stand side by side, without branches: compiled a second time for processors that
// take four numbers in one instruction, of which nearly all do, and the system's loader chooses. The
// numbers are the same: nothing is added in another order, nor multiplied and added in one step.
#pragma once

// The sanitizers' programs and other compilers' have one form alone.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TOCSIN_TOGETHER [[gnu::target_clones("avx2", "default")]]
#else
#define TOCSIN_TOGETHER
#endif
