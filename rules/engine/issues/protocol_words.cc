#include "rules/engine/issues/protocol_words.h"

#include <algorithm>
#include <array>

namespace tocsin::rules {
namespace {

constexpr std::array kWords = std::to_array<ProtocolWords>({
    {"gradients_cleared",
     "Gradients of {model} are cleared between backward() and optimizer.step(), so updates use "
     "none of them: call optimizer.zero_grad() before backward()",
     false},
    {"gradients_reused",
     "The optimizer of {model} makes two updates from one backward pass: call optimizer.step() "
     "once per backward()",
     false},
    {"parameter_twice",
     "Each update of {model} changes {count} of its parameters twice, they are in a second group "
     "or optimizer: give each parameter to one group",
     true},
    {"schedule_first",
     "The schedule of the learning rate of {model} steps before the optimizer, so its first rate "
     "is never used: call scheduler.step() after optimizer.step()",
     true},
    {"schedule_twice",
     "The schedule of the learning rate of {model} steps twice per backward pass, so it ends in "
     "half the time: call scheduler.step() once per update",
     true},
    {"scaler_left_out",
     "The optimizer of {model} uses gradients that are still multiplied by the loss scale: call "
     "scaler.step(optimizer) in the place of optimizer.step()",
     false},
    {"loss_not_scaled",
     "The scaler divides gradients of {model} by a loss scale that they were never multiplied by: "
     "call scaler.scale(loss).backward()",
     false},
    {"buffers_kept",
     "Running statistics of {count} normalizations of {model} do not change in training, but "
     "evaluation uses them: give them a momentum above 0",
     true},
    {"accumulation_left_out",
     "The optimizer of {model} makes an update after each backward pass, although {count} passes "
     "per update are planned: step only after the last of them",
     false},
    {"workers_alike",
     "{count} workers of a data loader of {model} draw the same random numbers, so their "
     "augmentations are the same: seed each with torch.initial_seed() in worker_init_fn",
     true},
    {"workers_repeat",
     "{count} workers of a data loader of {model} draw the same random numbers in each epoch, so "
     "augmentations repeat: seed them with torch.initial_seed() in worker_init_fn",
     true},
    {"checkpoint_lacks",
     "A checkpoint has the state of the optimizer of {model}, but not {count} of the parameters "
     "that it trains: save the modules that hold them too",
     true},
    {"best_not_copied",
     "load_state_dict() of {model} was given the tensors of the model itself and changes nothing: "
     "keep a good state as copy.deepcopy(model.state_dict())",
     false},
    {"loss_divided_twice",
     "The loss of {model} is divided by {count} twice, by the script and by its trainer: leave the "
     "division out of the script",
     false},
});

}  // namespace

const ProtocolWords* protocol_words(std::string_view kind) noexcept {
  const auto* const found = std::ranges::find(kWords, kind, &ProtocolWords::kind);
  return found == kWords.end() ? nullptr : found;
}

}  // namespace tocsin::rules
