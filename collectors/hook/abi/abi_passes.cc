// Times of a model's forward and backward pass, as the two hooks on it take them. python/tocsin/adapters/torch/models/phases.py says
// what is timed, has the same in Python, and does what is rare: evaluations, outputs that are no tensor.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectors/hook/abi/python_kept.h"
#include "collectors/hook/abi/python_lane.h"

namespace tocsin::hook {
namespace {

struct Passes {
  LaneRef lane;
  std::uint64_t forward = 0;  // names; 0: it is not told
  std::uint64_t backward = 0;
  std::vector<std::int64_t> begun;  // passes that go on: a model may be applied inside of itself
  std::int64_t backward_begun = 0;  // 0: none goes on
  bool pending = true;              // something ends with the next forward pass of training
  Kept with_gradients;              // whether they are computed
  Kept clock;
  Kept held;                         // the state of the clock in which it waits for a log()
  Kept on_begin, on_end, on_output;  // what is rare
  // {an id: the function that hears of the gradient}: its owner outlives the hooks, and would be a cycle here.
  PyObject* hooks = nullptr;
  Kept training = Kept::text("training");
  Kept state = Kept::text("state");
  Kept requires_grad = Kept::text("requires_grad");
  Kept grad_fn = Kept::text("grad_fn");
  Kept backward_hooks = Kept::text("_backward_hooks");
  Kept register_hooks = Kept::text("_register_hook_dict");
};

constexpr std::size_t kDeepest = 64;  // of more, the outermost have raised something

void end_backward(Passes& passes) {
  const std::int64_t begun = std::exchange(passes.backward_begun, 0);
  if (begun == 0 || passes.backward == 0) return;
  add(*passes.lane, {passes.backward, begun, passes.lane->now() - begun});
}

// A step that was kept open for a log() is over. False: its clock is to be told.
bool forward_begins(const Passes& passes) {
  const bool lent =
      passes.lane->carried(false, [](StepLease& lease, StepLane& lane, Session& session) {
        lease.take(StepEvent::forward, lane, session);
        return true;
      });
  return lent || attribute(passes.clock.get(), passes.state).get() != passes.held.get();
}

PyObject* begin(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  Passes& passes = self_of<Passes>(self);
  if (count < 1 || !is_ours(passes.lane->handle())) return none();
  if (!true_of(attribute(given[0], passes.training))) {
    passes.pending = true;
    call(passes.on_begin, given[0]);
    return none();
  }
  if (!true_of(Kept::of_result(python().call(passes.with_gradients.get(), nullptr)))) return none();
  end_backward(passes);
  if (passes.pending || !forward_begins(passes)) {
    passes.pending = false;
    call(passes.on_begin, given[0]);
  }
  if (passes.begun.size() == kDeepest) passes.begun.erase(passes.begun.begin());
  passes.begun.push_back(passes.lane->now());
  return none();
}

// `tensor.register_hook()` without its handle, where nobody else has one there; call_with_gradient() in Python says why.
bool hook(Passes& passes, PyObject* output) {
  if (!true_of(attribute(output, passes.requires_grad))) return false;
  const Kept made_by = attribute(output, passes.grad_fn);
  if (!made_by || made_by.get() == python().none) return false;
  const Kept take = attribute(made_by.get(), passes.register_hooks);
  const Kept others = attribute(output, passes.backward_hooks);
  if (!take || !others || others.get() != python().none) return false;
  if (passes.hooks == nullptr || python().size(passes.hooks) != 1) return false;
  if (python().set_attribute(output, passes.backward_hooks.get(), passes.hooks) != 0) {
    python().clear_error();
    return false;
  }
  return static_cast<bool>(Kept::of_result(python().call(take.get(), output, nullptr)));
}

PyObject* end(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  Passes& passes = self_of<Passes>(self);
  if (count < 3 || !is_ours(passes.lane->handle())) return none();
  if (!true_of(attribute(given[0], passes.training))) {
    call(passes.on_end, given[0]);
    return none();
  }
  if (passes.begun.empty()) return none();
  const std::int64_t begun = passes.begun.back();
  passes.begun.pop_back();
  if (passes.forward != 0) {
    add(*passes.lane, {passes.forward, begun, passes.lane->now() - begun});
  }
  if (passes.begun.empty() && !hook(passes, given[2])) call(passes.on_output, given[2]);
  return none();
}

PyObject* gradient(PyObject* self, PyObject* /*of the output*/) noexcept {
  Passes& passes = self_of<Passes>(self);
  if (passes.backward_begun == 0) passes.backward_begun = passes.lane->now();
  return none();
}

PyObject* update(PyObject* self, PyObject* /*unused*/) noexcept {
  Passes& passes = self_of<Passes>(self);
  end_backward(passes);
  passes.begun.clear();
  return none();
}

PyObject* going_on(PyObject* self, PyObject* /*unused*/) noexcept {
  const Passes& passes = self_of<Passes>(self);
  return python().build("(lL)", static_cast<long>(passes.begun.size()),
                        static_cast<long long>(passes.backward_begun));
}

PyObject* tell(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  Passes& passes = self_of<Passes>(self);
  if (!has(count, 3, "tell(forward, backward, hooks)") || !number(given[0], passes.forward) ||
      !number(given[1], passes.backward)) {
    return nullptr;
  }
  passes.hooks = given[2];
  return none();
}

PyMethod methods[] = {{"begin", untyped(begin), kPyArguments, nullptr},
                      {"end", untyped(end), kPyArguments, nullptr},
                      {"gradient", untyped(gradient), kPyOneArgument, nullptr},
                      {"update", untyped(update), kPyNoArguments, nullptr},
                      {"going_on", untyped(going_on), kPyNoArguments, nullptr},
                      {"tell", untyped(tell), kPyArguments, nullptr}};

}  // namespace

PyObject* passes_of(PyObject* self, Arguments given, std::ptrdiff_t count) noexcept {
  if (!has(count, 6, "passes(with_gradients, clock, held, on_begin, on_end, on_output)")) {
    return nullptr;
  }
  PyObject* out = nullptr;
  (void)guarded([&]() -> std::int32_t {
    Passes made;
    made.lane = self_of<LaneRef>(self);
    made.begun.reserve(kDeepest);
    Kept* const kept[] = {&made.with_gradients, &made.clock,  &made.held,
                          &made.on_begin,       &made.on_end, &made.on_output};
    for (std::size_t i = 0; i < 6; ++i) *kept[i] = Kept(given[i]);
    out = functions_of(methods, capsule_of(std::move(made)));
    return TOCSIN_OK;
  });
  if (out == nullptr && python().error_occurred() == nullptr) return none();
  return out;
}

}  // namespace tocsin::hook
