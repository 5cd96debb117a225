#include "app/cli/vocabulary.h"

#include <algorithm>
#include <string>

#include "collectors/collectors.h"
#include "core/collections.h"
#include "core/fields/words.h"
#include "core/statistics.h"

namespace tocsin::app {
namespace {

using core::ValueList;
using core::ValueMap;

template <typename E>
ValueMap codes() {
  ValueMap out;
  out.reserve(std::size(core::Words<E>::kAll));
  for (const E value : core::Words<E>::kAll) {
    out.emplace_back(std::string(to_string(value)), static_cast<int>(value));
  }
  return out;
}

template <typename Words>
ValueList texts(const Words& words) {
  ValueList out;
  out.reserve(words.size());
  for (const std::string_view word : words) out.emplace_back(std::string(word));
  return out;
}

template <typename E>
ValueList names(const std::vector<E>& values) {
  ValueList out;
  out.reserve(values.size());
  for (const E value : values) out.emplace_back(std::string(to_string(value)));
  return out;
}

ValueList collections() {
  ValueList out;
  out.reserve(core::builtin_collections().size());
  for (const core::Collection& one : core::builtin_collections()) {
    out.emplace_back(ValueMap{{"id", int{one.id}},
                              {"name", std::string(one.name)},
                              {"holds", std::string(one.holds)},
                              {"roles", names(one.roles)},
                              {"include", std::string(one.include)},
                              {"exclude", std::string(one.exclude)},
                              {"modes", names(one.modes)},
                              {"statistics", texts(one.statistics)},
                              {"standard", one.standard}});
  }
  return out;
}

bool given(const core::Statistic& statistic) {
  if (statistic.form == core::StatisticForm::column) return true;
  if (statistic.form == core::StatisticForm::derived) return false;
  const auto all = collectors::builtin_statistics();
  return std::any_of(all.begin(), all.end(), [&](const collectors::StatisticDescriptor& one) {
    return std::find(one.gives.begin(), one.gives.end(), statistic.name) != one.gives.end();
  });
}

/// `given`: by the hook of this version.
ValueList statistics() {
  ValueList out;
  out.reserve(core::builtin_statistics().size());
  for (const core::Statistic& one : core::builtin_statistics()) {
    out.emplace_back(ValueMap{{"id", int{one.id}},
                              {"name", std::string(one.name)},
                              {"form", std::string(to_string(one.form))},
                              {"request", std::string(one.request)},
                              {"parameters", texts(one.parameters)},
                              {"meaning", std::string(one.meaning)},
                              {"given", given(one)}});
  }
  return out;
}

}  // namespace

core::Value vocabulary() {
  return ValueMap{{"modes", codes<core::Mode>()},
                  {"dtypes", codes<core::Dtype>()},
                  {"roles", codes<core::Role>()},
                  {"collections", collections()},
                  {"statistics", statistics()}};
}

}  // namespace tocsin::app
