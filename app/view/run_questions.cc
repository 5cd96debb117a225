#include "app/view/run_questions.h"

#include <algorithm>

#include "rules/rules.h"

namespace tocsin::app {
namespace {

constexpr std::array<RunQuestion, 12> kQuestions{{
    {1,
     "targets",
     "Do the outputs fit their targets better than chance?",
     {"chance_level", "probabilities_into_loss", ""},
     "no loss with its targets was seen (hook.targets)",
     "a loss with its targets: about 1400 pairs of samples and 64 steps"},
    {2,
     "leak",
     "Is the task too easy to be true?",
     {"leak", "", ""},
     "no inputs, labels or evaluation rows were compared",
     "integer inputs and targets: 200 positions; labels and columns: 200 rows"},
    {3,
     "collapse",
     "Does the output depend on the input?",
     {"collapse", "", ""},
     "no outputs were measured",
     "the outputs of a loss"},
    {4,
     "movement",
     "Do updates move the parameters and lower the loss?",
     {"movement", "", ""},
     "no gradients and updates were measured",
     "gradients and updates of the parameters"},
    {5,
     "course",
     "Is the loss curve normal for its noise?",
     {"course", "loss_not_decreasing", "loss_spike"},
     "no loss was logged",
     "a logged loss: 64 values",
     false},
    {6,
     "budget",
     "Are the planned updates enough?",
     {"budget", "", ""},
     "neither learning rate nor plan is known (hook.plan)",
     "the learning rate and the planned updates (hook.plan)"},
    {7,
     "parity",
     "Does evaluation see the same kind of data as training?",
     {"parity", "mode_mismatch", ""},
     "no evaluation so far",
     "an evaluation beside training"},
    {8,
     "groups",
     "Is any class or group left out?",
     {"left_out_class", "", ""},
     "no classes were counted",
     "class labels: 50 samples of each class"},
    {9,
     "ranks",
     "Do the ranks work as one job?",
     {"ranks", "replica_divergence", ""},
     "no two ranks have sent fingerprints of their batches",
     "two ranks that share the data: 3 steps"},
    {10,
     "precision",
     "Do updates survive rounding?",
     {"precision", "", ""},
     "neither weights in 16 bits nor a loss scaler",
     "weights in 16 bits: 64 updates; a loss scaler: 200 updates"},
    {11,
     "reward",
     "Does the reward respond to training?",
     {"reward", "", ""},
     "no reward was logged",
     "reward per step and return per episode: 20 episodes"},
    {12,
     "protocol",
     "Does the training loop do its steps in order?",
     {"training_preflight", "", ""},
     "the first updates were not watched (PyTorch: watch)",
     "watch(model, optimizer): 3 updates",
     false},
}};

}  // namespace

std::span<const RunQuestion> run_questions() noexcept { return kQuestions; }

std::string unasked(const RunQuestion& question, std::span<const std::string> rule_types) {
  const std::string_view rule = question.rules[0];
  if (rule == "training_preflight") return {};  // the engine's own
  if (rules::find_rule(rule) == nullptr) return "this version has no rule for it";
  if (std::find(rule_types.begin(), rule_types.end(), rule) != rule_types.end()) return {};
  return "the rule " + std::string(rule) + " is not configured";
}

}  // namespace tocsin::app
