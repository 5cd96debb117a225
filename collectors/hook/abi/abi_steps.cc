// What a loop calls at every step (the calls around an optimizer's update, `hook.log()`, `hook.should_stop()`), while the
// clock is lent: python/tocsin/loop/steps.py says when that is. Whatever is not as in most steps is left to the function of
// Python that does all of it; until it is known that nothing is, nothing is done.
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "collectors/hook/abi/python_kept.h"
#include "collectors/hook/abi/python_lane.h"

namespace tocsin::hook {
namespace {

Kept target(const Kept& weak) { return Kept(python().weak_target(weak.get())); }

bool is_none(const Kept& value) { return !value || value.get() == python().none; }

bool is_a(PyObject* value, PyObject* type) {
  return Kept::of_result(python().type_of(value)).get() == type;
}

// Of an update of one optimizer. The functions of Python know their adapter weakly: it keeps this.
struct Driver {
  LaneRef lane;
  Kept optimizer;  // weak, as the model that is followed
  Kept model;
  Kept before, after;             // in Python
  Kept passes_end, enter, leave;  // of the passes and of the phase `optimizer`
  Kept rate;                      // the learning rate that was told last
  Kept tensor;                    // the class of tensors
  std::uint64_t rate_name = 0;
  bool may_be_elsewhere = false;  // this PyTorch knows other devices than the host
  Kept groups = Kept::text("param_groups");
  Kept params = Kept::text("params");
  Kept lr = Kept::text("lr");
  Kept members = Kept::text("__dict__");
  Kept grad_scale = Kept::text("grad_scale");
  Kept found_inf = Kept::text("found_inf");
  Kept training = Kept::text("training");
  Kept is_cuda = Kept::text("is_cuda");

  Driver() = default;
  Driver(Driver&&) = default;
  Driver& operator=(Driver&&) = delete;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() {
    if (lane == nullptr) return;
    lane->lent(0, [this](StepLease& lease, StepLane&, Session&) {
      if (lease.owner == this) lease.owner = nullptr;
      return 0;
    });
  }
};

bool owns(const Driver& driver, bool updating) {
  return driver.lane->carried(false, [&](const StepLease& lease, StepLane&, Session&) {
    return lease.owner == &driver && lease.updating == updating;
  });
}

bool is_training(const Driver& driver) {
  const Kept model = target(driver.model);
  return !is_none(model) && true_of(attribute(model.get(), driver.training));
}

// The update is one on the host, of gradients that nobody has scaled; gives its learning rate.
Kept ordinary(const Driver& driver) {
  const Kept optimizer = target(driver.optimizer);
  if (is_none(optimizer)) return {};
  const Kept groups = attribute(optimizer.get(), driver.groups);
  PyObject* first = groups ? python().list_item(groups.get(), 0) : nullptr;
  const Kept members = attribute(optimizer.get(), driver.members);
  if (first == nullptr || !members) {
    python().clear_error();
    return {};
  }
  for (const Kept* scaled : {&driver.grad_scale, &driver.found_inf}) {
    PyObject* value = python().dict_find(members.get(), scaled->get());
    if (value != nullptr && value != python().none) return {};
  }
  if (driver.may_be_elsewhere) {
    const Kept parameters = Kept::of_result(python().get_item(first, driver.params.get()));
    PyObject* parameter = parameters ? python().list_item(parameters.get(), 0) : nullptr;
    if (parameter == nullptr) python().clear_error();
    if (parameter == nullptr || true_of(attribute(parameter, driver.is_cuda))) return {};
  }
  return Kept::of_result(python().get_item(first, driver.lr.get()));
}

// True: all is done that is to be done before the update.
bool begin_update(Driver& driver) {
  if (!owns(driver, false) || !is_training(driver)) return false;
  Kept rate = ordinary(driver);
  if (!rate) return false;
  const bool says = rate.get() != driver.rate.get();
  if (says && !is_a(rate.get(), python().float_type)) return false;
  const double value = says ? python().as_double(rate.get()) : 0;
  const bool changed = says && value != python().as_double(driver.rate.get());
  call(driver.passes_end);
  const bool begun =
      driver.lane->lent(false, [&](StepLease& lease, StepLane& lane, Session& session) {
        if (lease.owner != &driver) return false;
        lease.take(StepEvent::close, lane, session);
        if (!lease.quiet) return false;
        if (changed) lane.scalar(session, driver.rate_name, value, true);
        return lease.updating = true;
      });
  if (!begun) return false;
  if (says) driver.rate = std::move(rate);
  call(driver.enter);
  return true;
}

PyObject* before(PyObject* self, PyObject* closure) noexcept {
  Driver& driver = self_of<Driver>(self);
  if (closure == python().none && begin_update(driver)) return none();
  return python().call(driver.before.get(), closure, nullptr);
}

PyObject* after(PyObject* self, PyObject* /*unused*/) noexcept {
  const Driver& driver = self_of<Driver>(self);
  if (!owns(driver, true)) return python().call(driver.after.get(), nullptr);
  call(driver.leave);
  driver.lane->lent(0, [&](StepLease& lease, StepLane& lane, Session& session) {
    if (lease.owner != &driver) return 0;
    lease.updating = false;
    lease.take(StepEvent::update, lane, session);
    return 0;
  });
  return none();
}

PyObject* lend(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  Driver& driver = self_of<Driver>(self);
  std::uint64_t elsewhere = 0;
  std::int64_t state = 0;
  std::uint64_t quiet = 0;
  StepLease lease;
  if (!has(count, 11,
           "lend(model, passes_end, enter, leave, rate, rate_name, tensor, elsewhere, state, "
           "number, quiet)") ||
      !number(given[5], driver.rate_name) || !number(given[7], elsewhere) ||
      !number(given[8], state) || !number(given[9], lease.number) || !number(given[10], quiet)) {
    return nullptr;
  }
  Kept* const kept[] = {&driver.model, &driver.passes_end, &driver.enter, &driver.leave,
                        &driver.rate};
  for (std::size_t i = 0; i < std::size(kept); ++i) *kept[i] = Kept(given[i]);
  driver.tensor = Kept(given[6]);
  driver.may_be_elsewhere = elsewhere != 0;
  lease.owner = &driver;
  lease.state = static_cast<StepState>(state);
  lease.quiet = quiet != 0;
  driver.lane->lend(lease);
  return none();
}

PyMethod driver_methods[] = {{"before", untyped(before), kPyOneArgument, nullptr},
                             {"after", untyped(after), kPyNoArguments, nullptr},
                             {"lend", untyped(lend), kPyArguments, nullptr}};

// The hook's own. `log` and `stop` are those of Python, which know their hook weakly.
struct Calls {
  static constexpr std::size_t kMost = 8;

  LaneRef lane;
  Kept log, stop;
  Kept names;  // {name of a scalar: its id}
  Kept item = Kept::text("item");
  Kept is_cuda = Kept::text("is_cuda");
  Kept step = Kept::text("step");  // is taken and not used
  // What was found in `names`, by the object that is the name: in a script that is always the same.
  std::array<std::pair<Kept, std::uint64_t>, kMost> found;
  std::size_t found_count = 0;
};

struct Values {
  std::array<ScalarValue, Calls::kMost> all;
  std::size_t count = 0;
};

bool id_of(Calls& calls, PyObject* name, std::uint64_t& out) {
  for (std::size_t i = 0; i < calls.found_count; ++i) {
    if (calls.found[i].first.get() != name) continue;
    out = calls.found[i].second;
    return true;
  }
  PyObject* id = python().dict_find(calls.names.get(), name);
  if (id == nullptr) return false;
  if (!number(id, out)) {
    python().clear_error();
    return false;
  }
  if (calls.found_count < Calls::kMost) calls.found[calls.found_count++] = {Kept(name), out};
  return true;
}

bool value_of(const Calls& calls, const Driver& driver, PyObject* given, double& out) {
  if (is_a(given, python().float_type)) {
    out = python().as_double(given);
    return true;
  }
  if (!is_a(given, driver.tensor.get())) return false;
  if (driver.may_be_elsewhere && true_of(attribute(given, calls.is_cuda))) return false;
  const Kept item = Kept::of_result(python().call_method(given, calls.item.get(), nullptr));
  if (!item) return false;
  if (number(item.get(), out)) return true;
  python().clear_error();
  return false;
}

bool add(Calls& calls, const Driver& driver, PyObject* name, PyObject* value, Values& out) {
  if (name == calls.step.get()) return true;
  if (out.count == Calls::kMost) return false;
  ScalarValue& next = out.all[out.count];
  if (!id_of(calls, name, next.name) || !value_of(calls, driver, value, next.value)) return false;
  ++out.count;
  return true;
}

bool read(Calls& calls, const Driver& driver, Arguments given, std::ptrdiff_t count,
          PyObject* names, Values& out) {
  if (count == 0 && names != nullptr) {
    const std::ptrdiff_t named = python().size(names);
    for (std::ptrdiff_t i = 0; i < named; ++i) {
      if (!add(calls, driver, python().tuple_item(names, i), given[i], out)) return false;
    }
    return true;
  }
  if (count != 1 || names != nullptr || !is_a(given[0], python().dict_type)) return false;
  const Kept dict(given[0]);
  std::ptrdiff_t place = 0;
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  const std::ptrdiff_t size = python().size(dict.get());
  while (python().dict_next(dict.get(), &place, &name, &value) != 0) {
    const Kept held(value);  // item() may run other code
    if (!add(calls, driver, name, value, out) || python().size(dict.get()) != size) return false;
  }
  return true;
}

bool log_values(Calls& calls, Arguments given, std::ptrdiff_t count, PyObject* names) {
  const auto* driver = static_cast<const Driver*>(
      calls.lane->carried(static_cast<const void*>(nullptr),
                          [](const StepLease& lease, StepLane&, Session&) { return lease.owner; }));
  Values values;
  if (driver == nullptr || !is_training(*driver) ||
      !read(calls, *driver, given, count, names, values)) {
    return false;
  }
  return calls.lane->lent(false, [&](StepLease& lease, StepLane& lane, Session& session) {
    if (lease.owner != driver) return false;
    for (std::size_t i = 0; i < values.count; ++i) {
      lane.scalar(session, values.all[i].name, values.all[i].value, lease.quiet);
    }
    lease.take(StepEvent::log, lane, session);
    return true;
  });
}

PyObject* log_in_python(const Calls& calls, Arguments given, std::ptrdiff_t count,
                        PyObject* names) {
  const Kept arguments = Kept::of_result(python().new_tuple(count));
  const Kept named = Kept::of_result(python().new_dict());
  if (!arguments || !named) return none();
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    python().increase(given[i]);
    if (python().tuple_put(arguments.get(), i, given[i]) != 0) return nullptr;
  }
  const std::ptrdiff_t more = names == nullptr ? 0 : python().size(names);
  for (std::ptrdiff_t i = 0; i < more; ++i) {
    PyObject* name = python().tuple_item(names, i);
    if (python().dict_put(named.get(), name, given[count + i]) != 0) return nullptr;
  }
  return python().call_with(calls.log.get(), arguments.get(), named.get());
}

PyObject* log(PyObject* self, Arguments given, std::ptrdiff_t count, PyObject* names) noexcept {
  Calls& calls = self_of<Calls>(self);
  if (log_values(calls, given, count, names)) return none();
  return log_in_python(calls, given, count, names);
}

PyObject* should_stop(PyObject* self, PyObject* /*unused*/) noexcept {
  const Calls& calls = self_of<Calls>(self);
  const int ahead = calls.lane->carried(-1, [](const StepLease& lease, StepLane&, Session&) {
    return lease.state == StepState::held ? 1 : 0;
  });
  if (ahead >= 0 &&
      tocsin_stop_requested_at(calls.lane->handle(), static_cast<std::uint32_t>(ahead)) == 0) {
    return none();
  }
  return python().call(calls.stop.get(), nullptr);
}

PyMethod calls_methods[] = {{"log", untyped(log), kPyArguments | kPyKeywords, nullptr},
                            {"should_stop", untyped(should_stop), kPyNoArguments, nullptr}};

template <typename Made, std::size_t N, typename Fill>
PyObject* made(PyMethod (&methods)[N], PyObject* self, Fill&& fill) noexcept {
  PyObject* out = nullptr;
  (void)guarded([&]() -> std::int32_t {
    Made one;
    one.lane = self_of<LaneRef>(self);
    fill(one);
    out = functions_of(methods, capsule_of(std::move(one)));
    return TOCSIN_OK;
  });
  if (out == nullptr && python().error_occurred() == nullptr) return none();
  return out;
}

PyObject* steps(PyObject* self, bool take) noexcept {
  const StepLease now =
      self_of<LaneRef>(self)->lent(StepLease(), [&](StepLease& lease, StepLane&, Session&) {
        const StepLease found = lease;
        if (take) lease.owner = nullptr;
        return found;
      });
  if (now.owner == nullptr) return none();
  return python().build("(lLiiO)", static_cast<long>(now.state), static_cast<long long>(now.number),
                        now.quiet ? 1 : 0, now.updating ? 1 : 0,
                        static_cast<const Driver*>(now.owner)->rate.get());
}

}  // namespace

PyObject* driver_of(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  if (!has(count, 3, "driver(before, after, optimizer)")) return nullptr;
  return made<Driver>(driver_methods, self, [&](Driver& driver) {
    driver.before = Kept(given[0]);
    driver.after = Kept(given[1]);
    driver.optimizer = Kept(given[2]);
  });
}

PyObject* calls_of(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  if (!has(count, 3, "calls(log, should_stop, names)")) return nullptr;
  return made<Calls>(calls_methods, self, [&](Calls& calls) {
    calls.log = Kept(given[0]);
    calls.stop = Kept(given[1]);
    calls.names = Kept(given[2]);
  });
}

PyObject* take_steps(PyObject* self, PyObject* /*unused*/) noexcept { return steps(self, true); }

PyObject* peek_steps(PyObject* self, PyObject* /*unused*/) noexcept { return steps(self, false); }

PyObject* want_steps(PyObject* self, PyObject* wanted) noexcept {
  std::uint64_t given = 0;
  if (!number(wanted, given)) return nullptr;
  self_of<LaneRef>(self)->want(given != 0);
  return none();
}

}  // namespace tocsin::hook
