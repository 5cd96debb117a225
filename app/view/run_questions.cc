#include "app/view/run_questions.h"

#include <algorithm>

#include "rules/rules.h"

namespace tocsin::app {
namespace {

constexpr std::array<RunQuestion, 12> kQuestions{{
    {1,
     "targets",
     "Do the outputs know their targets?",
     {"chance_level", "probabilities_into_loss", ""},
     "no loss with its targets has been seen (hook.targets)",
     "a loss with its targets: about 1400 pairs of samples and 64 steps"},
    {2,
     "leak",
     "Is it too good to be true?",
     {"leak", "", ""},
     "no inputs, labels or evaluation rows have been compared",
     "whole numbers in and out: 200 places; labels and columns: 200 rows"},
    {3,
     "collapse",
     "Does the output depend on the input?",
     {"collapse", "", ""},
     "no outputs have been measured",
     "the outputs of a loss"},
    {4,
     "movement",
     "Does what may move move, and does it pay?",
     {"movement", "", ""},
     "no gradients and updates have been measured",
     "gradients and updates of the parameters"},
    {5,
     "course",
     "Is the course of the loss normal for its noise?",
     {"course", "loss_not_decreasing", "loss_spike"},
     "no loss has been logged",
     "a logged loss: 64 values",
     false},
    {6,
     "budget",
     "Can the planned updates be enough?",
     {"budget", "", ""},
     "no learning rate and no plan are known (hook.plan)",
     "the learning rate and the planned updates (hook.plan)"},
    {7,
     "parity",
     "Does evaluation see the same world?",
     {"parity", "mode_mismatch", ""},
     "no evaluation so far",
     "an evaluation beside training"},
    {8,
     "groups",
     "Is any class or group left out?",
     {"left_out_class", "", ""},
     "no classes have been counted",
     "targets of classes: 50 samples of each class"},
    {9,
     "ranks",
     "Are the ranks one job?",
     {"ranks", "replica_divergence", ""},
     "no two ranks have sent fingerprints of their batches",
     "two ranks that share out the data: 3 steps"},
    {10,
     "precision",
     "Do updates survive their precision?",
     {"precision", "", ""},
     "no weights in 16 bits and no loss scaler",
     "weights in 16 bits: 64 updates; a loss scaler: 200 updates"},
    {11,
     "reward",
     "Does the reward answer?",
     {"reward", "", ""},
     "no reward is logged",
     "reward per step and return per episode: 20 episodes"},
    {12,
     "protocol",
     "Is the protocol kept?",
     {"training_preflight", "", ""},
     "nobody has watched the first updates (PyTorch: watch)",
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
