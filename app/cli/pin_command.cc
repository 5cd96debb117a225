#include "app/cli/pin_command.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/audit_record.h"
#include "app/view/topic_view.h"
#include "app/view/which_run.h"
#include "core/fields/run_pin.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kPinPatience = 60s;
constexpr auto kPinWritten = 10s;

struct Pinning {
  std::string run, headline;
  std::optional<core::RunPin> standing;
};

core::Result<Pinning> look_at_pins(const Looking& looking, const PinOptions& options) {
  auto source = view_source(looking.transport());
  if (!source) return source.error();
  TopicView view;
  std::map<std::string, core::RunPin> pins;
  const auto apply = [&](const core::RecordView& record) {
    view.apply(record);
    const std::string_view key = record.key.value_or("");
    if (record.topic != core::topic::kRouterControl || !key.starts_with(core::kPinPrefix)) return;
    const std::string run(key.substr(core::kPinPrefix.size()));
    pins.erase(run);
    if (record.tombstone) return;
    auto pin = core::read_run_pin(record.text());
    if (pin && pin->run == run) pins[run] = std::move(*pin);
  };
  if (auto read = read_to_end(**source, apply, kPinPatience); !read) return read.error();
  const auto found = which_run(known_runs(view), options.run, options.job);
  if (!found) return found.error();
  Pinning out;
  out.run = core::to_text(found->run.uid);
  const std::string& job = found->run.job;
  out.headline =
      job.empty() ? "run " + out.run.substr(0, 8) : job + ", run " + out.run.substr(0, 8);
  if (const auto pin = pins.find(out.run); pin != pins.end()) out.standing = pin->second;
  return out;
}

core::Value said_of_pin(const std::optional<core::RunPin>& pin) {
  if (!pin) return {};
  return core::ValueMap{
      {"by", pin->by}, {"at", core::to_rfc3339(pin->at)}, {"origin", pin->origin}};
}

core::Status write_it(const Looking& looking, const Pinning& of,
                      const std::optional<core::RunPin>& wished, core::WallTime now,
                      const std::string& author) {
  core::OutRecord record = wished ? core::pin_record(*wished) : core::pin_tombstone(of.run);
  AuditEntry entry;
  entry.at = now;
  entry.who = author;
  entry.by = "command";
  const std::string person = this_person();
  entry.source = person.substr(person.find('@') + 1);
  entry.what = wished ? "pin.set" : "pin.taken_back";
  entry.subject = record.key;
  entry.before = said_of_pin(of.standing);
  entry.after = said_of_pin(wished);
  ingest::PublisherOptions publishing;
  publishing.writer = "pin-" + std::to_string(getpid());
  publishing.durable = true;
  auto publisher = looking.transport().publisher(publishing);
  if (!publisher) return publisher.error();
  for (const core::OutRecord& one : {audit_record(entry), std::move(record)}) {
    if (auto sent = (*publisher)->publish(one); !sent) return sent;
  }
  return (*publisher)->flush(kPinWritten);
}

void print_pin(const PinOptions& options, const Pinning& of,
               const std::optional<core::RunPin>& wished) {
  if (options.json) {
    std::cout << core::to_json(core::ValueMap{{"uid", of.run}, {"pin", said_of_pin(wished)}})
              << "\n";
    return;
  }
  const char* would = options.dry_run ? "would be " : "";
  std::cout << of.headline << ": " << would << (wished ? "pinned\n" : "pinned no more\n");
}

}  // namespace

int pin_command(const PinOptions& options) {
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened)
    return refuse(opened.error());
  const auto found = look_at_pins(looking, options);
  if (!found) {
    const auto code = found.error().code;
    if (code != core::Code::not_found && code != core::Code::failed_precondition)
      return refuse(found.error());
    std::cerr << "tocsin: " << found.error().message << "\n";
    return kFailed;
  }
  if (options.take_back && !found->standing) {
    std::cerr << "tocsin: nobody has pinned " << found->headline << "\n";
    return kFailed;
  }
  const std::string author = options.author.empty() ? this_person() : options.author;
  const core::WallTime now = core::SystemClock().now();
  std::optional<core::RunPin> wished;
  if (!options.take_back)
    wished = found->standing.value_or(core::RunPin{found->run, author, now, "cli"});
  if (wished) {
    if (const auto good = core::read_run_pin(core::pin_json(*wished)); !good) {
      std::cerr << "tocsin: --author: " << good.error().message << "\n";
      return kUsage;
    }
  }
  const bool stands = wished.has_value() == found->standing.has_value();
  if (!options.dry_run && !stands) {
    if (const auto done = write_it(looking, *found, wished, now, author); !done)
      return refuse(done.error());
  }
  print_pin(options, *found, wished);
  return kOk;
}

}  // namespace tocsin::app
