#include "core/collections.h"

#include <algorithm>

namespace tocsin::core {

std::span<const Collection> builtin_collections() {
  using enum Role;
  static const Collection kTable[] = {
      {.id = 1, .name = "all", .holds = "every tensor", .include = ".*"},
      {.id = 2, .name = "default", .holds = "what a script saves without naming a collection"},
      {.id = 3,
       .name = "weights",
       .holds = "trainable parameters other than biases",
       .roles = {weight},
       .include = "weight",
       .exclude = "^gradient",
       .statistics = {"delta"},
       .standard = true},
      {.id = 4,
       .name = "biases",
       .holds = "bias parameters",
       .roles = {bias},
       .include = "bias[^.]*$",
       .exclude = "^gradient",
       .standard = true},
      {.id = 5,
       .name = "gradients",
       .holds = "gradients of trainable parameters",
       .roles = {gradient},
       .include = "^gradient",
       .modes = {Mode::train},
       .standard = true},
      {.id = 6,
       .name = "losses",
       .holds = "loss values",
       .roles = {loss},
       .include = "[Ll]oss\\d*_.*output",
       .exclude = "[Ll]oss\\d*_input",
       .standard = true},
      {.id = 7, .name = "metrics", .holds = "metrics of the framework", .roles = {metric}},
      {.id = 8, .name = "inputs", .holds = "inputs of the model", .roles = {input}},
      {.id = 9,
       .name = "outputs",
       .holds = "outputs of the model: labels and predictions",
       .roles = {output, label, prediction}},
      {.id = 10,
       .name = "layers",
       .holds = "inputs and outputs of intermediate layers",
       .roles = {activation_in, activation_out}},
      {.id = 11,
       .name = "optimizer_variables",
       .holds = "what the optimizer remembers per parameter",
       .roles = {optimizer},
       .modes = {Mode::train}},
      {.id = 12,
       .name = "hyperparameters",
       .holds = "parameters of a booster, one tensor each",
       .roles = {hyperparameter},
       .include = "^hyperparameters/"},
      {.id = 13,
       .name = "predictions",
       .holds = "predictions on the validation set",
       .roles = {prediction},
       .include = "^predictions$"},
      {.id = 14,
       .name = "labels",
       .holds = "labels of the validation set",
       .roles = {label},
       .include = "^labels$"},
      {.id = 15,
       .name = "feature_importance",
       .holds = "one scalar per type of importance and feature",
       .roles = {importance},
       .include = "^feature_importance/"},
      {.id = 16,
       .name = "average_shap",
       .holds = "mean contribution of each feature",
       .include = "^average_shap/",
       .exclude = "/bias$"},
      {.id = 17,
       .name = "full_shap",
       .holds = "contributions of each feature per sample",
       .roles = {shap},
       .include = "^full_shap/",
       .exclude = "/bias$"},
      {.id = 18,
       .name = "trees",
       .holds = "the tree built in this round",
       .roles = {tree},
       .include = "^trees/"},
      {.id = 19,
       .name = "ledger",
       .holds = "what each loss call says of its task",
       .roles = {ledger},
       .include = "^ledger/"},
  };
  return kTable;
}

const Collection* find_collection(std::string_view name) {
  for (const Collection& one : builtin_collections()) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

const Collection* collection_of(Role role) {
  for (const Collection& one : builtin_collections()) {
    if (std::find(one.roles.begin(), one.roles.end(), role) != one.roles.end()) return &one;
  }
  return nullptr;
}

std::vector<std::string> collection_names() {
  std::vector<std::string> names;
  names.reserve(builtin_collections().size());
  for (const Collection& one : builtin_collections()) names.emplace_back(one.name);
  return names;
}

}  // namespace tocsin::core
