// The C interface, for CPython: the calls of every step as functions of Python, without ctypes between. In a loop each
// call is the first in milliseconds, and what it touches comes from memory: the way through ctypes costs ten
// microseconds then, and every line of Python its share.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "app/client/abi_guard.h"
#include "app/client/python_calls.h"
#include "app/client/step_lane.h"

namespace client = tocsin::app::client;

namespace {

using client::PyMethod;
using client::PyObject;
using client::PythonCalls;

// Of one client, shared by all functions that were made for it. After close() nothing is done any more.
class Lane {
 public:
  explicit Lane(tocsin_client* handle) : handle_(handle), lane_(client::process().clock) {}

  // Runs `call(StepLane&, Session&)`; `otherwise` where the client is closed or another process's. Nothing of a parent is
  // touched, not even its lock.
  template <typename T, typename F>
  T with(T otherwise, F&& call) noexcept {
    if (!client::is_ours(handle_)) return otherwise;
    T out = otherwise;
    (void)client::guarded([&]() -> std::int32_t {
      const std::lock_guard lock(mutex_);  // of a Python without its global lock
      if (handle_ != nullptr) out = call(lane_, handle_->client->session());
      return TOCSIN_OK;
    });
    return out;
  }
  [[nodiscard]] tocsin_client* handle() const noexcept { return handle_; }
  [[nodiscard]] std::int64_t now() const { return lane_.now(); }
  void close() noexcept {
    if (!client::is_ours(handle_)) {
      handle_ = nullptr;
      return;
    }
    const std::lock_guard lock(mutex_);
    handle_ = nullptr;
  }

 private:
  std::mutex mutex_;
  tocsin_client* handle_;
  client::StepLane lane_;
};

// A phase of it; may be entered again inside itself.
struct Phase {
  std::shared_ptr<Lane> lane;
  std::uint64_t name = 0;
  std::vector<std::int64_t> began;
};

// A phase inside itself; of more, the outermost were entered and never left: something was raised in them.
constexpr std::size_t kDeepest = 64;

// Once a function below runs, they were found.
const PythonCalls& python() { return *client::python_calls(); }

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

PyObject* none() {
  python().increase(python().none);
  return python().none;
}

// False: an error is set in Python.
bool number(PyObject* given, std::uint64_t& out) {
  out = python().as_u64(given);
  return out != ~std::uint64_t{0} || python().error_occurred() == nullptr;
}
bool number(PyObject* given, std::int64_t& out) {
  out = python().as_i64(given);
  return out != -1 || python().error_occurred() == nullptr;
}
bool number(PyObject* given, double& out) {
  out = python().as_double(given);
  return out != -1 || python().error_occurred() == nullptr;
}

bool has(std::ptrdiff_t given, std::ptrdiff_t wanted, const char* signature) {
  if (given == wanted) return true;
  python().set_error(*python().type_error, signature);
  return false;
}

using LaneRef = std::shared_ptr<Lane>;
using Arguments = PyObject* const*;

PyObject* scalar(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  std::uint64_t name = 0;
  double value = 0;
  std::int64_t quiet = 0;
  if (!has(count, 3, "scalar(name, value, quiet)") || !number(given[0], name) ||
      !number(given[1], value) || !number(given[2], quiet)) {
    return nullptr;
  }
  self_of<LaneRef>(self)->with(0, [&](client::StepLane& lane, client::Session& session) {
    lane.scalar(session, name, value, quiet != 0);
    return 0;
  });
  return none();
}

void add(Lane& lane, const client::PhaseTime& time) {
  lane.with(0, [&](client::StepLane& held, client::Session& session) {
    held.time(session, time);
    return 0;
  });
}

PyObject* phase_add(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  Phase& phase = self_of<Phase>(self);
  client::PhaseTime time;
  time.name = phase.name;
  if (!has(count, 2, "add(start, duration)") || !number(given[0], time.start) ||
      !number(given[1], time.duration)) {
    return nullptr;
  }
  add(*phase.lane, time);
  return none();
}

PyObject* phase_enter(PyObject* self, PyObject* /*unused*/) noexcept {
  Phase& phase = self_of<Phase>(self);
  if (phase.began.size() == kDeepest) phase.began.erase(phase.began.begin());
  phase.began.push_back(phase.lane->now());
  return none();
}

// Whatever is given: __exit__ has an exception's three, which goes on.
PyObject* phase_leave(PyObject* self, Arguments /*given*/, std::ptrdiff_t /*count*/) noexcept {
  Phase& phase = self_of<Phase>(self);
  if (phase.began.empty()) return none();
  const std::int64_t began = phase.began.back();
  phase.began.pop_back();
  add(*phase.lane, {phase.name, began, phase.lane->now() - began});
  return none();
}

template <typename F>
void* untyped(F* function) {
  return reinterpret_cast<void*>(function);
}

PyObject* phase_depth(PyObject* self, PyObject* /*unused*/) noexcept {
  return python().new_long(static_cast<long>(self_of<Phase>(self).began.size()));
}

PyMethod phase_methods[] = {{"enter", untyped(phase_enter), client::kPyNoArguments, nullptr},
                            {"leave", untyped(phase_leave), client::kPyArguments, nullptr},
                            {"depth", untyped(phase_depth), client::kPyNoArguments, nullptr},
                            {"add", untyped(phase_add), client::kPyArguments, nullptr}};

// {name: function} over one object, whose reference is taken.
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

PyObject* phase(PyObject* self, PyObject* name) noexcept {
  PyObject* out = nullptr;
  (void)client::guarded([&]() -> std::int32_t {
    Phase made;
    made.lane = self_of<LaneRef>(self);
    made.began.reserve(kDeepest);
    if (number(name, made.name)) out = functions_of(phase_methods, capsule_of(std::move(made)));
    return TOCSIN_OK;
  });
  if (out == nullptr && python().error_occurred() == nullptr) return none();
  return out;
}

PyObject* tell_held(PyObject* self, PyObject* /*unused*/) noexcept {
  self_of<LaneRef>(self)->with(0, [](client::StepLane& lane, client::Session& session) {
    lane.tell_held(session);
    return 0;
  });
  return none();
}

PyObject* tell_values(PyObject* self, PyObject* /*unused*/) noexcept {
  self_of<LaneRef>(self)->with(0, [](client::StepLane& lane, client::Session& session) {
    lane.tell_values(session);
    return 0;
  });
  return none();
}

PyObject* step_end(PyObject* self, PyObject* given) noexcept {
  std::int64_t flags = 0;
  if (!number(given, flags)) return nullptr;
  const bool quiet =
      self_of<LaneRef>(self)->with(false, [&](client::StepLane& lane, client::Session& session) {
        return lane.step_end(session, (flags & TOCSIN_STEP_OPTIMIZER_SKIPPED) != 0,
                             static_cast<std::uint32_t>(flags >> 16 > 1 ? flags >> 16 : 1));
      });
  return python().new_bool(quiet ? 1 : 0);
}

PyObject* stop_requested(PyObject* self, PyObject* given) noexcept {
  std::int64_t ahead = 0;
  if (!number(given, ahead)) return nullptr;
  return python().new_long(tocsin_stop_requested_at(self_of<LaneRef>(self)->handle(),
                                                    static_cast<std::uint32_t>(ahead)));
}

PyObject* due(PyObject* self, PyObject* given) noexcept {
  std::uint64_t collection = 0;
  if (!number(given, collection)) return nullptr;
  const bool answer = self_of<LaneRef>(self)->with(
      false, [&](client::StepLane& /*lane*/, client::Session& session) {
        return session.due(collection);
      });
  return python().new_bool(answer ? 1 : 0);
}

PyObject* held(PyObject* self, PyObject* /*unused*/) noexcept {
  const auto [values, times] = self_of<LaneRef>(self)->with(
      std::pair<long, long>(0, 0), [](client::StepLane& lane, client::Session& /*session*/) {
        return std::pair<long, long>(static_cast<long>(lane.values()),
                                     static_cast<long>(lane.times()));
      });
  return python().build("(ll)", values, times);
}

PyObject* set_short(PyObject* self, PyObject* given) noexcept {
  std::int64_t nanoseconds = 0;
  if (!number(given, nanoseconds)) return nullptr;
  self_of<LaneRef>(self)->with(0, [&](client::StepLane& lane, client::Session& /*session*/) {
    lane.set_short(nanoseconds);
    return 0;
  });
  return none();
}

PyObject* close(PyObject* self, PyObject* /*unused*/) noexcept {
  self_of<LaneRef>(self)->close();
  return none();
}

PyMethod lane_methods[] = {
    {"scalar", untyped(scalar), client::kPyArguments, nullptr},
    {"phase", untyped(phase), client::kPyOneArgument, nullptr},
    {"tell_held", untyped(tell_held), client::kPyNoArguments, nullptr},
    {"tell_values", untyped(tell_values), client::kPyNoArguments, nullptr},
    {"due", untyped(due), client::kPyOneArgument, nullptr},
    {"step_end", untyped(step_end), client::kPyOneArgument, nullptr},
    {"stop_requested", untyped(stop_requested), client::kPyOneArgument, nullptr},
    {"held", untyped(held), client::kPyNoArguments, nullptr},
    {"set_short", untyped(set_short), client::kPyOneArgument, nullptr},
    {"close", untyped(close), client::kPyNoArguments, nullptr}};

}  // namespace

extern "C" void* tocsin_python(tocsin_client* handle) {
  void* out = nullptr;
  (void)client::with(handle, [&](client::Client&) -> std::int32_t {
    if (client::python_calls() == nullptr) return TOCSIN_NOT_FOUND;
    out = functions_of(lane_methods, capsule_of(std::make_shared<Lane>(handle)));
    return TOCSIN_OK;
  });
  return out;
}
