// Row rules that remember a window whose length is a parameter: the plain state of the rule and
// behind it so many items, all of it one block that the engine owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "rules/contract/rule.h"

namespace tocsin::rules {

/// The latest items of a window, newest first; which of them are in use is part of the rule's
/// state. Trivially copyable.
struct Latest {
  std::uint32_t next = 0;
  std::uint32_t size = 0;

  void clear() noexcept { next = size = 0; }
  template <typename Item>
  void push(std::span<Item> items, const Item& item) noexcept {
    items[next] = item;
    next = next + 1 == items.size() ? 0 : next + 1;
    if (size < items.size()) ++size;
  }
  /// Item `back` < size places behind the newest.
  template <typename Item>
  [[nodiscard]] Item& at(std::span<Item> items, std::uint32_t back) const noexcept {
    const auto length = static_cast<std::uint32_t>(items.size());
    const std::uint32_t place = next + length - 1 - back;  // below twice the length
    return items[place < length ? place : place - length];
  }
};

/// `Rule` has what RowProgramOf asks for, and: Item (as State), window(config) → how many
/// of them; its update is update(config, state, items, row, batch). And perhaps Glance, made of (config,
/// batch) once per frame: helps() → whether to ask it at all; settles(state, items, row, slot) → does what
/// update would where that surely answers Glance::kAnswer, and is false, with nothing done, elsewhere.
template <typename Rule>
class WindowedRowProgram final : public RowProgram {
 public:
  using State = typename Rule::State;
  using Item = typename Rule::Item;
  static_assert(std::is_trivially_copyable_v<State> && std::is_trivially_copyable_v<Item>);
  static_assert(Whole<State> && Whole<Item>, "snapshots hold their bytes");
  static_assert(sizeof(State) % 8 == 0 && sizeof(Item) % 8 == 0, "states stand side by side");
  typename Rule::Config config;

  [[nodiscard]] TensorUse tensor_use() const noexcept override {
    if constexpr (requires { Rule::kTensorUse; }) return Rule::kTensorUse;
    return TensorUse::one;
  }
  [[nodiscard]] std::size_t state_bytes() const noexcept override {
    return sizeof(State) + Rule::window(config) * sizeof(Item);
  }
  void init(std::byte* state) const override {
    new (state) State{};
    const std::span<Item> tail = items(state);
    for (Item& item : tail) new (&item) Item{};
  }
  void judge(const RowBatch& batch, std::span<const std::uint32_t> rows, std::byte* states,
             const Life* lives, std::vector<RowHit>& noted,
             EvaluationCounts& counts) const override {
    const std::size_t size = state_bytes();
    const std::size_t window = Rule::window(config);
    const auto each = [&](auto&& update) {
      judge_rows(batch, rows, lives, noted, counts,
                 [&](const Row& row, std::uint32_t slot, std::size_t at) {
                   fetch_ahead(batch, rows, at, states, size);
                   std::byte* own = states + slot * size;
                   const std::span<Item> tail(reinterpret_cast<Item*>(own + sizeof(State)), window);
                   return update(*reinterpret_cast<State*>(own), tail, row, slot);
                 });
    };
    const auto in_full = [&](State& state, std::span<Item> tail, const Row& row, std::uint32_t) {
      return Rule::update(config, state, tail, row, batch);
    };
    if constexpr (requires { typename Rule::Glance; }) {
      const typename Rule::Glance glance(config, batch);
      if (glance.helps()) {
        return each([&](State& state, std::span<Item> tail, const Row& row, std::uint32_t slot) {
          return glance.settles(state, tail, row, slot) ? Rule::Glance::kAnswer
                                                        : in_full(state, tail, row, slot);
        });
      }
    }
    each(in_full);
  }
  [[nodiscard]] Finding explain(const std::byte* state, const Row* row, const RowBatch* batch,
                                const Subject& subject, unsigned kind) const override {
    return Rule::explain(config, *reinterpret_cast<const State*>(state), row, batch, subject, kind);
  }
  [[nodiscard]] double badness(const std::byte* state, const Row* row) const override {
    return Rule::badness(config, *reinterpret_cast<const State*>(state), row);
  }

 private:
  [[nodiscard]] std::span<Item> items(std::byte* state) const noexcept {
    return {reinterpret_cast<Item*>(state + sizeof(State)), Rule::window(config)};
  }
};

template <typename Rule>
std::shared_ptr<const Program> read_windowed_row_rule(config::Reader& in, Preset preset) {
  return read_rule<Rule, WindowedRowProgram<Rule>>(in, preset);
}

}  // namespace tocsin::rules
