// The locks of the standard library, with annotations that Clang checks. They cost what std::mutex and
// std::condition_variable cost.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "core/thread_annotations.h"

namespace tocsin::core {

/// A std::mutex. Its fields say GUARDED_BY(mutex_), and private functions that want it say REQUIRES(mutex_).
class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Prefer MutexLock. std::condition_variable_any calls these too.
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a mutex as long as it lives.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Gives up a mutex that the caller holds, and takes it again at the end of its life.
class SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~MutexUnlock() RELEASE() {
    mutex_.lock();
  }  // Clang's word for the end of a scope, whatever it does
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

/// A std::condition_variable. The caller holds the mutex; waiting gives it up and takes it again.
/// `ready` is called with the mutex held, and says so: `[this]() REQUIRES(mutex_) { return done_; }`.
class CondVar {
 public:
  template <typename Ready>
  void wait(Mutex& mutex, Ready ready) REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    changed_.wait(held, std::move(ready));
    held.release();  // the caller's still
  }
  /// Returns ready() as it is at the end.
  template <typename Rep, typename Period, typename Ready>
  bool wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> timeout, Ready ready)
      REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    const bool is_ready = changed_.wait_for(held, timeout, std::move(ready));
    held.release();
    return is_ready;
  }
  template <typename Clock, typename Duration, typename Ready>
  bool wait_until(Mutex& mutex, std::chrono::time_point<Clock, Duration> deadline, Ready ready)
      REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    const bool is_ready = changed_.wait_until(held, deadline, std::move(ready));
    held.release();
    return is_ready;
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

/// A std::condition_variable_any: as CondVar, and a stop that is asked for ends the wait too.
class StoppableCondVar {
 public:
  template <typename Ready>
  void wait(Mutex& mutex, Ready ready) REQUIRES(mutex) {
    changed_.wait(mutex, std::move(ready));
  }
  /// Returns ready() as it is at the end.
  template <typename Ready>
  bool wait(Mutex& mutex, std::stop_token stop, Ready ready) REQUIRES(mutex) {
    return changed_.wait(mutex, std::move(stop), std::move(ready));
  }
  template <typename Rep, typename Period, typename Ready>
  bool wait_for(Mutex& mutex, std::stop_token stop, std::chrono::duration<Rep, Period> timeout,
                Ready ready) REQUIRES(mutex) {
    return changed_.wait_for(mutex, std::move(stop), timeout, std::move(ready));
  }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable_any changed_;
};

}  // namespace tocsin::core
