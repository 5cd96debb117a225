// Which units a selector takes: its source's name and its matchers, compiled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/contract/rule.h"
#include "rules/declared/syntax.h"

namespace tocsin::rules::declared {

class Choice {
 public:
  Choice();
  ~Choice();
  Choice(Choice&&) noexcept;
  Choice& operator=(Choice&&) noexcept;

  /// A problem of the selector: a pattern that is none, a label that its source does not have.
  static std::optional<Problem> make(const Selector& selector, Choice& out);

  /// Tensors and scalars.
  [[nodiscard]] Match matches(const Candidate& candidate) const;
  [[nodiscard]] Match matches_span(const Candidate& candidate) const;
  /// Steps: by their mode and who made them.
  [[nodiscard]] bool matches_step(const Candidate& who) const;
  /// A series of a node. `base`: its name without attributes; `device`: those.
  [[nodiscard]] bool matches_series(std::string_view base, std::string_view device,
                                    const Candidate& who) const;
  [[nodiscard]] std::uint8_t modes() const noexcept { return modes_; }

 private:
  struct Test;
  std::optional<Problem> add(const Matcher& matcher);
  [[nodiscard]] Match labels(const Candidate& who, std::string_view device) const;

  Selector::Source source_ = Selector::Source::metric;
  std::string name_;
  bool any_ = false;  // every name
  std::unique_ptr<Test> pattern_;
  Selection selection_;
  std::vector<Test> tests_;
  std::uint8_t modes_ = kAllModes;
};

}  // namespace tocsin::rules::declared
