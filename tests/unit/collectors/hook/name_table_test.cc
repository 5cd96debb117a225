#include "collectors/hook/publish/name_table.h"

#include <gtest/gtest.h>

#include <utility>

namespace tocsin::hook {
namespace {

using core::Role;

Role role_of(std::string_view name) {
  auto plan = CapturePlan::compile(CaptureConfig{});
  NameTable names("worker_0", "");
  return names.find(names.put(name, {}, *plan))->role;
}

// The names of several frameworks, none of which states a role.
TEST(NameTable, ATensorWithoutARoleIsWhatItsNameSays) {
  const std::pair<const char*, Role> kNames[] = {
      {"conv1.weight", Role::weight},
      {"hybridsequential0_dense0_weight", Role::weight},
      {"fc.bias", Role::bias},
      {"dense/bias:0", Role::bias},
      {"relative_bias.weight", Role::weight},
      {"gradient/conv1.weight", Role::gradient},
      {"gradient/fc.bias", Role::gradient},
      {"CrossEntropyLoss_output_0", Role::loss},
      {"softmaxcrossentropyloss10_output_0", Role::loss},
      {"feature_importance/gain/f1", Role::importance},
      {"hyperparameters/eta", Role::hyperparameter},
      {"trees/Node", Role::tree},
      {"predictions", Role::prediction},
      {"labels", Role::label},
      {"layer1.relu_output_0", Role::other},
      {"cls_token", Role::other},
  };
  for (const auto& [name, role] : kNames) EXPECT_EQ(role_of(name), role) << name;
}

TEST(NameTable, AStatedRoleWins) {
  auto plan = CapturePlan::compile(CaptureConfig{});
  NameTable names("worker_0", "");
  NameInfo info;
  info.role = Role::bias;
  EXPECT_EQ(names.find(names.put("conv1.weight", info, *plan))->role, Role::bias);
}

}  // namespace
}  // namespace tocsin::hook
