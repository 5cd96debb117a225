// Functions of CPython over the library's own objects: what their makers share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "collectors/hook/abi/abi_guard.h"
#include "collectors/hook/abi/python_calls.h"
#include "collectors/hook/abi/step_lane.h"
#include "collectors/hook/abi/step_lease.h"
#include "core/mutex.h"

namespace tocsin::hook {

/// Of one client, shared by all functions that were made for it. After close() nothing is done any more.
class Lane {
 public:
  /// `handle` is open, and of this process.
  explicit Lane(tocsin_client* handle) : generation_(handle->generation), handle_(handle) {}

  /// Runs `call(StepLane&, Session&)`; `otherwise` where the client is closed or another process's. Nothing of a parent is
  /// touched, not even its lock.
  template <typename T, typename F>
  T with(T otherwise, F&& call) noexcept {
    return on_state(otherwise,
                    [&](State& state, Session& session) { return call(state.lane, session); });
  }
  /// Runs `call(StepLease&, StepLane&, Session&)` while the clock is lent; else as above.
  template <typename T, typename F>
  T lent(T otherwise, F&& call) noexcept {
    return on_state(otherwise, [&](State& state, Session& session) {
      return state.lease.owner == nullptr ? otherwise : call(state.lease, state.lane, session);
    });
  }
  /// As above, unless the clock is wanted back: whoever asks so leaves what comes next to Python.
  template <typename T, typename F>
  T carried(T otherwise, F&& call) noexcept {
    return on_state(otherwise, [&](State& state, Session& session) {
      return state.lease.owner == nullptr || state.wanted ? otherwise
                                                          : call(state.lease, state.lane, session);
    });
  }
  /// From any thread.
  void want(bool wanted) noexcept {
    on_state(0, [&](State& state, Session&) {
      state.wanted = wanted;
      return 0;
    });
  }
  /// Null owner: it is lent to nobody.
  void lend(const StepLease& lease) noexcept {
    on_state(0, [&](State& state, Session&) {
      state.lease = lease;
      return 0;
    });
  }
  /// Null once it is closed.
  [[nodiscard]] tocsin_client* handle() const noexcept { return handle_.load(); }
  [[nodiscard]] std::int64_t now() const { return core::nanoseconds(process().clock.now()); }
  void close() noexcept {
    if (!is_ours()) {
      handle_ = nullptr;
      return;
    }
    const core::MutexLock lock(mutex_);
    handle_ = nullptr;
  }

 private:
  struct State {
    StepLane lane{process().clock};
    StepLease lease;
    bool wanted = false;  // back, in Python
  };
  [[nodiscard]] bool is_ours() const noexcept {
    return generation_ == process().generation.load(std::memory_order_relaxed);
  }
  template <typename T, typename F>
  T on_state(T otherwise, F&& call) noexcept {
    if (!is_ours()) return otherwise;
    T out = otherwise;
    (void)guarded([&]() -> std::int32_t {
      const core::MutexLock lock(mutex_);  // of a Python without its global lock
      tocsin_client* const open = handle_.load(std::memory_order_relaxed);
      if (open != nullptr) out = call(state_, open->client->session());
      return TOCSIN_OK;
    });
    return out;
  }

  const std::uint64_t generation_;
  core::Mutex mutex_;
  std::atomic<tocsin_client*> handle_;  // changes only under mutex_, in the process that opened it
  State state_ GUARDED_BY(mutex_);
};

using LaneRef = std::shared_ptr<Lane>;
using Arguments = PyObject* const*;

/// Once a function below runs, they were found.
inline const PythonCalls& python() { return *python_calls(); }

template <typename T>
T& self_of(PyObject* capsule) {
  return *static_cast<T*>(python().capsule_pointer(capsule, nullptr));
}

template <typename T>
void destroy(PyObject* capsule) {
  delete static_cast<T*>(python().capsule_pointer(capsule, nullptr));
}

template <typename T>
PyObject* capsule_of(T value) {
  auto owned = std::make_unique<T>(std::move(value));
  PyObject* out = python().new_capsule(owned.get(), nullptr, destroy<T>);
  if (out != nullptr) (void)owned.release();
  return out;
}

inline PyObject* none() {
  python().increase(python().none);
  return python().none;
}

/// False: an error is set in Python.
inline bool number(PyObject* given, std::uint64_t& out) {
  out = python().as_u64(given);
  return out != ~std::uint64_t{0} || python().error_occurred() == nullptr;
}
inline bool number(PyObject* given, std::int64_t& out) {
  out = python().as_i64(given);
  return out != -1 || python().error_occurred() == nullptr;
}
inline bool number(PyObject* given, double& out) {
  out = python().as_double(given);
  return out != -1 || python().error_occurred() == nullptr;
}

inline bool has(std::ptrdiff_t given, std::ptrdiff_t wanted, const char* signature) {
  if (given == wanted) return true;
  python().set_error(*python().type_error, signature);
  return false;
}

inline void add(Lane& lane, const PhaseTime& time) {
  lane.with(0, [&](StepLane& held, Session& session) {
    held.time(session, time);
    return 0;
  });
}

template <typename F>
void* untyped(F* function) {
  return reinterpret_cast<void*>(function);
}

/// {name: function} over one object, whose reference is taken.
template <std::size_t N>
PyObject* functions_of(PyMethod (&methods)[N], PyObject* self) {
  if (self == nullptr) return nullptr;
  PyObject* out = python().new_dict();
  bool whole = out != nullptr;
  for (std::size_t i = 0; i < N && whole; ++i) {
    PyObject* function = python().new_function(&methods[i], self, nullptr);
    whole = function != nullptr && python().dict_set(out, methods[i].name, function) == 0;
    if (function != nullptr) python().decrease(function);
  }
  python().decrease(self);
  if (!whole && out != nullptr) {
    python().decrease(out);
    return nullptr;
  }
  return out;
}

/// `passes(…)` of a lane: {name: function} for the hooks on one model (abi_passes.cc).
PyObject* passes_of(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept;

/// `driver(…)`, `calls(…)`, `take_steps()`, `peek_steps()` and `want_steps()` of a lane (abi_steps.cc).
PyObject* driver_of(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept;
PyObject* calls_of(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept;
PyObject* take_steps(PyObject* self, PyObject* unused) noexcept;
PyObject* peek_steps(PyObject* self, PyObject* unused) noexcept;
PyObject* want_steps(PyObject* self, PyObject* wanted) noexcept;

}  // namespace tocsin::hook
