// The C interface, for CPython: the calls of every step as functions of Python, without ctypes between. In a loop each
// call is the first in milliseconds, and what it touches comes from memory: the way through ctypes costs ten
// microseconds then, and every line of Python its share.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collectors/hook/abi/python_lane.h"

namespace hook = tocsin::hook;

namespace {

using hook::add;
using hook::Arguments;
using hook::capsule_of;
using hook::functions_of;
using hook::has;
using hook::Lane;
using hook::LaneRef;
using hook::none;
using hook::number;
using hook::PyMethod;
using hook::PyObject;
using hook::python;
using hook::self_of;
using hook::untyped;

// A phase of it; may be entered again inside itself.
struct Phase {
  std::shared_ptr<Lane> lane;
  std::uint64_t name = 0;
  std::vector<std::int64_t> began;
  std::int64_t ended = 0;  // when it was left last
};

// A phase inside itself; of more, the outermost were entered and never left: something was raised in them.
constexpr std::size_t kDeepest = 64;

PyObject* scalar(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  std::uint64_t name = 0;
  double value = 0;
  std::int64_t quiet = 0;
  if (!has(count, 3, "scalar(name, value, quiet)") || !number(given[0], name) ||
      !number(given[1], value) || !number(given[2], quiet)) {
    return nullptr;
  }
  self_of<LaneRef>(self)->with(0, [&](hook::StepLane& lane, hook::Session& session) {
    lane.scalar(session, name, value, quiet != 0);
    return 0;
  });
  return none();
}

PyObject* phase_add(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  Phase& phase = self_of<Phase>(self);
  hook::PhaseTime time;
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
  phase.ended = phase.lane->now();
  add(*phase.lane, {phase.name, began, phase.ended - began});
  return none();
}

PyObject* phase_depth(PyObject* self, PyObject* /*unused*/) noexcept {
  return python().new_long(static_cast<long>(self_of<Phase>(self).began.size()));
}

PyObject* phase_ended(PyObject* self, PyObject* /*unused*/) noexcept {
  return python().build("L", static_cast<long long>(self_of<Phase>(self).ended));
}

PyMethod phase_methods[] = {{"enter", untyped(phase_enter), hook::kPyNoArguments, nullptr},
                            {"leave", untyped(phase_leave), hook::kPyArguments, nullptr},
                            {"depth", untyped(phase_depth), hook::kPyNoArguments, nullptr},
                            {"ended", untyped(phase_ended), hook::kPyNoArguments, nullptr},
                            {"add", untyped(phase_add), hook::kPyArguments, nullptr}};

PyObject* phase(PyObject* self, PyObject* name) noexcept {
  PyObject* out = nullptr;
  (void)hook::guarded([&]() -> std::int32_t {
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
  self_of<LaneRef>(self)->with(0, [](hook::StepLane& lane, hook::Session& session) {
    lane.tell_held(session);
    return 0;
  });
  return none();
}

PyObject* tell_values(PyObject* self, PyObject* /*unused*/) noexcept {
  self_of<LaneRef>(self)->with(0, [](hook::StepLane& lane, hook::Session& session) {
    lane.tell_values(session);
    return 0;
  });
  return none();
}

PyObject* step_end(PyObject* self, PyObject* given) noexcept {
  std::int64_t flags = 0;
  if (!number(given, flags)) return nullptr;
  const bool quiet =
      self_of<LaneRef>(self)->with(false, [&](hook::StepLane& lane, hook::Session& session) {
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
      false,
      [&](hook::StepLane& /*lane*/, hook::Session& session) { return session.due(collection); });
  return python().new_bool(answer ? 1 : 0);
}

PyObject* held(PyObject* self, PyObject* /*unused*/) noexcept {
  const auto [values, times] = self_of<LaneRef>(self)->with(
      std::pair<long, long>(0, 0), [](hook::StepLane& lane, hook::Session& /*session*/) {
        return std::pair<long, long>(static_cast<long>(lane.values()),
                                     static_cast<long>(lane.times()));
      });
  return python().build("(ll)", values, times);
}

PyObject* set_short(PyObject* self, PyObject* given) noexcept {
  std::int64_t nanoseconds = 0;
  if (!number(given, nanoseconds)) return nullptr;
  self_of<LaneRef>(self)->with(0, [&](hook::StepLane& lane, hook::Session& /*session*/) {
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
    {"scalar", untyped(scalar), hook::kPyArguments, nullptr},
    {"phase", untyped(phase), hook::kPyOneArgument, nullptr},
    {"passes", untyped(hook::passes_of), hook::kPyArguments, nullptr},
    {"driver", untyped(hook::driver_of), hook::kPyArguments, nullptr},
    {"calls", untyped(hook::calls_of), hook::kPyArguments, nullptr},
    {"take_steps", untyped(hook::take_steps), hook::kPyNoArguments, nullptr},
    {"peek_steps", untyped(hook::peek_steps), hook::kPyNoArguments, nullptr},
    {"want_steps", untyped(hook::want_steps), hook::kPyOneArgument, nullptr},
    {"tell_held", untyped(tell_held), hook::kPyNoArguments, nullptr},
    {"tell_values", untyped(tell_values), hook::kPyNoArguments, nullptr},
    {"due", untyped(due), hook::kPyOneArgument, nullptr},
    {"step_end", untyped(step_end), hook::kPyOneArgument, nullptr},
    {"stop_requested", untyped(stop_requested), hook::kPyOneArgument, nullptr},
    {"held", untyped(held), hook::kPyNoArguments, nullptr},
    {"set_short", untyped(set_short), hook::kPyOneArgument, nullptr},
    {"close", untyped(close), hook::kPyNoArguments, nullptr}};

}  // namespace

extern "C" void* tocsin_python(tocsin_client* handle) {
  void* out = nullptr;
  (void)hook::with(handle, [&](hook::Client&) -> std::int32_t {
    if (hook::python_calls() == nullptr) return TOCSIN_NOT_FOUND;
    out = functions_of(lane_methods, capsule_of(std::make_shared<Lane>(handle)));
    return TOCSIN_OK;
  });
  return out;
}
