// A rule of rows whose judgement is a function of a shared object.
#pragma once

#include <memory>
#include <string>

#include "rules/contract/rule.h"
#include "rules/native/library.h"

namespace tocsin::rules::native {

/// What the library says of the rule, checked.
struct Description {
  std::string name;
  std::string version = "1";
  std::size_t state_bytes = 0;
  core::ValueMap parameters;  // with their defaults
  std::vector<core::Role> roles;
  std::vector<std::string> needs;  // collections
  std::string observed = "observed";
  std::string op = ">";
  std::string threshold = "threshold";
  std::string summary;
  std::string recommendation;
};

/// invalid_argument: says what is missing or wrong.
core::Result<Description> describe(const Library& library);

class NativeProgram final : public RowProgram {
 public:
  /// invalid_argument: the library refuses the parameters.
  core::Status open(std::shared_ptr<const Library> library, Description description,
                    const core::ValueMap& parameters);
  ~NativeProgram() override;

  [[nodiscard]] std::size_t state_bytes() const noexcept override;
  void init(std::byte* state) const override;
  void judge(const RowBatch& batch, std::span<const std::uint32_t> rows, std::byte* states,
             const Life* lives, std::vector<RowHit>& noted,
             EvaluationCounts& counts) const override;
  [[nodiscard]] Finding explain(const std::byte* state, const Row* row, const RowBatch* batch,
                                const Subject& subject, unsigned kind) const override;
  [[nodiscard]] double badness(const std::byte* state, const Row* row) const override;
  [[nodiscard]] std::string trouble(const std::byte* state) const override;

 private:
  std::shared_ptr<const Library> library_;
  Description description_;
  std::size_t own_bytes_ = 0;  // of the library's state, in whole words
  tocsin_rule* rule_ = nullptr;
};

}  // namespace tocsin::rules::native
