#include "routing/suppress/controls.h"

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>

#include "core/text.h"
#include "core/visible_text.h"
#include "routing/suppress/ack_records.h"
#include "routing/suppress/approvals.h"
#include "routing/suppress/delivery_orders.h"
#include "routing/suppress/feedback_records.h"
#include "routing/suppress/pin_records.h"
#include "routing/suppress/run_note_records.h"
#include "routing/suppress/silences.h"
#include "routing/suppress/view_records.h"

namespace tocsin::routing {
namespace {

using core::Status;
using core::WallTime;

template <typename Records>
std::unique_ptr<ControlRecords> make(Tables& tables) {
  if constexpr (std::is_constructible_v<Records, Tables&>) {
    return std::make_unique<Records>(tables);
  } else {
    return std::make_unique<Records>();
  }
}

constexpr std::array kControlKinds{
    ControlKind{"ack", "ack/<id>", "people, by `tocsin ack`", "the acknowledgement is taken back",
                make<AckRecords>},
    ControlKind{"approval", "approval/<command id>",
                "`stop_training`; people, by `tocsin stops`; the leader's `runs`",
                "nobody waits for it any more", make<Approvals>},
    ControlKind{"breaker", "breaker/<integration>",
                "people, by `tocsin breaker reset`, `tocsin endpoint probe`", "nothing",
                make<DeliveryOrders>},
    ControlKind{"endpoint", "endpoint/<integration>",
                "people, by `tocsin endpoint disable`, `tocsin endpoint enable`",
                "the integration is enabled again", make<DeliveryOrders>},
    ControlKind{"note", "note/<id>", "people, by `tocsin note` or the page", "the note is removed",
                make<NoteRecords>},
    ControlKind{"pin", "pin/<run uid>", "people, by `tocsin pin` or the page",
                "the run is kept no longer than others", make<PinRecords>},
    ControlKind{"run-note", "run-note/<id>", "people and programs, by the API",
                "the note is removed", make<RunNoteRecords>},
    ControlKind{"silence", "silence/<id>",
                "people, by `tocsin silence`; the router, where a silence ends by itself",
                "the silence is taken back", make<Silences>},
    ControlKind{"verdict", "verdict/<issue key>/<event id>",
                "people, by `tocsin verdict` or the page", "the verdict is taken back",
                make<VerdictRecords>},
    ControlKind{"view", "view/<id>", "the page, for whoever has signed in",
                "no curves are chosen any more", make<ViewRecords>},
};

/// The key as it is said to people: it may be of any length, and hold any bytes.
constexpr std::size_t kShownKey = 100;

core::Error unknown_key(std::string_view key) {
  std::string expected;
  std::vector<std::string> prefixes;
  for (const ControlKind& kind : kControlKinds) {
    expected += (expected.empty() ? "" : ", ") + std::string(kind.key);
    prefixes.emplace_back(kind.prefix);
  }
  const std::string near = core::nearest(std::string(key.substr(0, key.find('/'))), prefixes);
  return core::invalid_argument("unknown key \"" + core::visible(key.substr(0, kShownKey)) +
                                "\": expected " + expected +
                                (near.empty() ? "" : "; did you mean \"" + near + "/\"?"));
}

}  // namespace

std::span<const ControlKind> control_kinds() noexcept { return kControlKinds; }

Controls::Controls(Tables& tables) {
  for (const ControlKind& kind : control_kinds()) records_.push_back(kind.make(tables));
}

ControlRecords* Controls::find(std::string_view prefix) const {
  for (std::size_t i = 0; i < kControlKinds.size(); ++i) {
    if (kControlKinds[i].prefix == prefix) return records_[i].get();
  }
  return nullptr;
}

Status Controls::apply(std::string_view key, std::optional<std::string_view> value, WallTime now) {
  const std::size_t slash = key.find('/');
  ControlRecords* records = slash == std::string_view::npos ? nullptr : find(key.substr(0, slash));
  if (records == nullptr) return unknown_key(key);
  return records->apply(key.substr(slash + 1), value, now);
}

void Controls::forget(WallTime now) {
  for (const auto& one : records_) one->forget(now);
}

void Controls::count(Stats& stats, WallTime now) const {
  for (const auto& one : records_) one->count(stats, now);
}

std::vector<const Suppressor*> Controls::suppressors() const {
  std::vector<const Suppressor*> out;
  for (const auto& one : records_) {
    if (const Suppressor* suppressor = one->suppressor()) out.push_back(suppressor);
  }
  return out;
}

std::optional<Status> Controls::restore(std::string_view prefix, std::string_view id,
                                        std::string_view value) {
  ControlRecords* records = find(prefix);
  if (records == nullptr) return std::nullopt;
  return records->restore(id, value);
}

void Controls::take(std::vector<StateRecord>& out) {
  for (const auto& one : records_) one->take(out);
}

void Controls::snapshot(std::vector<StateRecord>& out) const {
  for (const auto& one : records_) one->snapshot(out);
}

}  // namespace tocsin::routing
