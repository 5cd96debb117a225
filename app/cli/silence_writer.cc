#include "app/cli/silence_writer.h"

#include <unistd.h>

#include <memory>
#include <optional>

#include "app/process/person.h"
#include "app/view/audit_record.h"
#include "app/view/silence_records.h"
#include "app/view/topic_view.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using routing::Silence;

constexpr auto kWriteLimit = 10s;
constexpr auto kReadBackLimit = 10s;
constexpr int kReadBacks = 20;  // each reads the topic to its end

core::OutRecord audit_of_silence(const Silence& silence,
                                 const std::map<std::string, Silence>& known, core::WallTime now) {
  AuditEntry entry;
  entry.at = now;
  entry.who = this_person();
  entry.by = "command";
  entry.source = entry.who.substr(entry.who.find('@') + 1);
  entry.what = silence.ends_at <= now ? "silence.ended" : "silence.set";
  entry.subject = silence.id;
  const auto before = known.find(silence.id);
  if (before != known.end()) entry.before = silence_fields(before->second);
  entry.after = silence_fields(silence);
  return audit_record(entry);
}

core::Status publish(ingest::Transport& transport, const std::vector<core::OutRecord>& records) {
  ingest::PublisherOptions publishing;
  publishing.writer = "silence-" + std::to_string(getpid());
  publishing.durable = true;
  auto publisher = transport.publisher(publishing);
  if (!publisher) return publisher.error();
  for (const core::OutRecord& record : records) {
    if (auto sent = (*publisher)->publish(record); !sent) return sent;
  }
  return (*publisher)->flush(kWriteLimit);
}

// What stands in the topic now.
core::Result<std::map<std::string, Silence>> standing_silences(ingest::Transport& transport) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kRouterControl};
  options.start = ingest::Start::beginning;
  auto source = transport.source(options);
  if (!source) return source.error();
  TopicView view;
  const auto apply = [&](const core::RecordView& record) { view.apply(record); };
  if (auto read = read_to_end(**source, apply, kReadBackLimit); !read) return read.error();
  return view.silences();
}

}  // namespace

core::Status write_silences(ingest::Transport& transport, const std::vector<Silence>& silences,
                            const std::map<std::string, Silence>& known, core::WallTime now) {
  std::vector<core::OutRecord> records;
  for (const Silence& silence : silences) records.push_back(audit_of_silence(silence, known, now));
  for (core::OutRecord& record : silence_records(silences, known, now))
    records.push_back(std::move(record));
  if (auto written = publish(transport, records); !written) return written;
  for (int i = 0; i < kReadBacks; ++i) {
    const auto standing = standing_silences(transport);
    if (!standing) return standing.error();
    bool all = true;
    for (const Silence& silence : silences) {
      const auto found = standing->find(silence.id);
      if (found == standing->end() || found->second.version < silence.version) {
        all = false;
      } else if (!(found->second == silence)) {
        return core::Error{core::Code::failed_precondition,
                           "silence " + silence.id + " was changed by somebody else at the same " +
                               "time (version " + std::to_string(found->second.version) +
                               "); look at it with `tocsin silence list`, and change it again"};
      }
    }
    if (all) return core::ok();
  }
  return core::unavailable(
      "the silence was written, but the topic router-control does not show it "
      "yet; see: tocsin silence list");
}

}  // namespace tocsin::app
