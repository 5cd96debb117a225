// Which mutex guards what, in words that Clang checks (-Wthread-safety). Other compilers read nothing.
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#if defined(__clang__)
#define TOCSIN_THREAD_ANNOTATION(attribute) __attribute__((attribute))
#else
#define TOCSIN_THREAD_ANNOTATION(attribute)
#endif

/// Of a class: it is a lock, and `kind` is the word for it in messages.
#define CAPABILITY(kind) TOCSIN_THREAD_ANNOTATION(capability(kind))
/// Of a class: it holds a lock from its constructor to its destructor.
#define SCOPED_CAPABILITY TOCSIN_THREAD_ANNOTATION(scoped_lockable)

/// Of a field: read and write it only while you hold `mutex`.
#define GUARDED_BY(mutex) TOCSIN_THREAD_ANNOTATION(guarded_by(mutex))
/// Of a pointer: what it points to is guarded; the pointer itself is not.
#define PT_GUARDED_BY(mutex) TOCSIN_THREAD_ANNOTATION(pt_guarded_by(mutex))

/// Of a function or lambda: its caller holds these locks.
#define REQUIRES(...) TOCSIN_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
/// Of a function: its caller must not hold these locks, for the function takes them.
#define EXCLUDES(...) TOCSIN_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
/// Of a function: it takes these locks and returns with them.
#define ACQUIRE(...) TOCSIN_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) TOCSIN_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
/// Of a function: it gives these locks back.
#define RELEASE(...) TOCSIN_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) TOCSIN_THREAD_ANNOTATION(release_shared_capability(__VA_ARGS__))

/// Of a function: not checked. The line above it says why the analysis cannot follow.
#define NO_THREAD_SAFETY_ANALYSIS TOCSIN_THREAD_ANNOTATION(no_thread_safety_analysis)
