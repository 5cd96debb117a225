#include "app/cli/dlq_command.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "app/cli/command_audit.h"
#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/dead_letter_records.h"
#include "app/view/dead_letters.h"
#include "app/view/refused_records.h"
#include "app/view/replay_plan.h"
#include "app/view/topic_view.h"
#include "core/system_clock.h"
#include "core/text_table.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::chrono::seconds kDlqPatience{60};
constexpr std::chrono::seconds kDlqWritten{10};
constexpr std::size_t kDlqIdLength = 18;

/// Both kinds, as the topics have them.
struct Dlq {
  Looking looking;
  DeadLetters letters;
  RefusedRecords records;
};

/// What a person means by ids and filters.
struct Chosen {
  std::vector<const DeadLetter*> letters;
  std::vector<const RefusedRecord*> records;
  [[nodiscard]] std::size_t size() const { return letters.size() + records.size(); }
};

core::Status read_dlq(Dlq& dlq) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kDlq, core::topic::kRouterDeadletter,
                    core::topic::kRouterDeliveries};
  options.start = ingest::Start::beginning;
  auto source = dlq.looking.transport().source(std::move(options));
  if (!source) return source.error();
  const auto apply = [&](const core::RecordView& record) {
    dlq.letters.apply(record);
    dlq.records.apply(record);
  };
  if (auto read = read_to_end(**source, apply, kDlqPatience); !read) return read;
  dlq.letters.close();
  return core::ok();
}

// kOk, or the exit code for why nothing is seen, which was said.
int open_dlq(const DlqOptions& options, Dlq& dlq) {
  if (auto opened = dlq.looking.open(options.config_file, options.out); !opened) {
    return refuse(opened.error());
  }
  if (auto reached = dlq.looking.transport().ping(std::chrono::seconds(5)); !reached) {
    return refuse(reached.error());
  }
  dlq.records = RefusedRecords({options.ids.begin(), options.ids.end()});
  const auto read = read_dlq(dlq);
  return read ? kOk : refuse(read.error());
}

bool of_integration(const DeadLetter& letter, const std::string& wanted) {
  return wanted.empty() || letter.notification.integration == wanted ||
         letter.notification.receiver == wanted;
}

Chosen listed_letters(const Dlq& dlq, const DlqOptions& options) {
  Chosen out;
  for (const auto& [id, letter] : dlq.letters.letters()) {
    if ((letter.open() || options.all) && of_integration(letter, options.integration)) {
      out.letters.push_back(&letter);
    }
  }
  if (!options.integration.empty()) return out;
  for (const auto& [id, record] : dlq.records.records()) {
    if (record.act.empty() || options.all) out.records.push_back(&record);
  }
  return out;
}

// Of one id: the letter it names, else nothing and why.
core::Status choose(const Dlq& dlq, const std::string& id, Chosen& out) {
  if (const auto record = dlq.records.records().find(id); record != dlq.records.records().end()) {
    out.records.push_back(&record->second);
    return core::ok();
  }
  std::vector<const DeadLetter*> found;
  for (auto one = dlq.letters.letters().lower_bound(id); one != dlq.letters.letters().end();
       ++one) {
    if (!one->first.starts_with(id)) break;
    found.push_back(&one->second);
    if (one->first == id) {
      found = {&one->second};
      break;
    }
  }
  if (found.size() == 1) {
    out.letters.push_back(found.front());
    return core::ok();
  }
  return core::not_found((found.empty() ? std::string("no dead letter")
                                        : std::to_string(found.size()) + " dead letters") +
                         " with ID " + core::visible(id, 200) + "; see: tocsin dlq list --all");
}

core::Result<Chosen> named_letters(const Dlq& dlq, const DlqOptions& options) {
  Chosen out;
  for (const std::string& id : options.ids) {
    if (auto found = choose(dlq, id, out); !found) return found.error();
  }
  if (options.ids.empty()) {
    for (const DeadLetter* letter : listed_letters(dlq, options).letters)
      out.letters.push_back(letter);
  }
  return out;
}

core::Result<std::unique_ptr<core::RecordPublisher>> writer_of(const Looking& looking) {
  ingest::PublisherOptions publishing;
  publishing.writer = "dlq-" + std::to_string(getpid());
  publishing.durable = true;
  return looking.transport().publisher(publishing);
}

core::Status write_letters(const Looking& looking, const std::vector<core::OutRecord>& records) {
  if (records.empty()) return core::ok();
  auto publisher = writer_of(looking);
  if (!publisher) return publisher.error();
  for (const core::OutRecord& record : records) {
    if (auto sent = (*publisher)->publish(record); !sent) return sent;
  }
  return (*publisher)->flush(kDlqWritten);
}

/// What a command says of each letter.
struct LetterWord {
  std::string id;
  std::string what;
  bool refused = false;
};

int say_words(const std::vector<LetterWord>& words, bool json) {
  core::ValueList list;
  int code = kOk;
  for (const LetterWord& word : words) {
    if (word.refused) code = kFailed;
    if (json) {
      list.push_back(
          core::ValueMap{{"id", word.id}, {"what", word.what}, {"refused", word.refused}});
    } else {
      (word.refused ? std::cerr : std::cout)
          << core::visible(word.id, 200) << " " << word.what << "\n";
    }
  }
  if (json) std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  if (!json && words.empty()) std::cout << "no dead letters\n";
  return code;
}

void plan_letters(const Chosen& chosen, const DlqOptions& options, const TopicView& view,
                  std::vector<core::OutRecord>& out, std::vector<LetterWord>& words) {
  const core::WallTime now = core::SystemClock().now();
  const std::string by = this_person();
  for (const DeadLetter* letter : chosen.letters) {
    const std::string& id = letter->notification.notification_id;
    if (letter->stand() == "replaying") {
      words.push_back({id, "is being sent again already: tocsin history", true});
      continue;
    }
    ReplayPlan plan = plan_replay(letter->notification, view, {options.as_was, options.force}, now);
    if (!plan.refused.empty()) {
      words.push_back({id, "not sent again: " + plan.refused, true});
      continue;
    }
    const std::string replay = replay_id(id, by, now);
    out.push_back(command_audit("dead_letter.replayed", id, core::Value(),
                                core::ValueMap{{"integration", letter->notification.integration},
                                               {"note", options.note},
                                               {"replay", replay}},
                                now));
    out.push_back(letter_act_record(id, letter->notification.integration,
                                    {"replay", by, options.note, replay}));
    out.push_back(replay_record(plan.notification, replay));
    words.push_back({id,
                     std::string(options.dry_run ? "would be sent" : "is sent") + " again to " +
                         letter->notification.integration,
                     false});
  }
}

void plan_records(const Chosen& chosen, const DlqOptions& options,
                  std::vector<core::OutRecord>& out, std::vector<LetterWord>& words) {
  const core::WallTime now = core::SystemClock().now();
  const std::string by = this_person();
  for (const RefusedRecord* record : chosen.records) {
    auto again = replay_of_refused(*record);
    if (!again) {
      words.push_back({record->id, "not published again: " + again.error().message, true});
      continue;
    }
    out.push_back(command_audit("refused_record.replayed", record->id, core::Value(),
                                core::ValueMap{{"topic", record->topic}, {"note", options.note}},
                                now));
    out.push_back(std::move(*again));
    out.push_back(refused_act_record(*record, "replay", by, options.note));
    words.push_back({record->id,
                     std::string(options.dry_run ? "would be published" : "is published") +
                         " again to " + record->topic,
                     false});
  }
}

}  // namespace

int dlq_list(const DlqOptions& options) {
  Dlq dlq;
  if (const int code = open_dlq(options, dlq); code != kOk) return code;
  const Chosen chosen = listed_letters(dlq, options);
  if (options.json) {
    core::ValueList list;
    for (const DeadLetter* letter : chosen.letters) list.push_back(letter_value(*letter, false));
    for (const RefusedRecord* record : chosen.records) {
      list.push_back(refused_value(*record, false));
    }
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
    return kOk;
  }
  if (chosen.size() == 0) std::cout << "no dead letters\n";
  if (!chosen.letters.empty()) {
    std::vector<core::TableRow> rows{
        {"NOTIFICATION", "STATE", "DIED", "INTEGRATION", "KIND", "WHY"}};
    for (const DeadLetter* letter : chosen.letters) {
      rows.push_back(
          {letter->notification.notification_id.substr(0, kDlqIdLength), letter->stand(),
           core::to_rfc3339(letter->died()), core::visible(letter->notification.integration, 60),
           std::string(to_string(letter->notification.kind)),
           letter->events.empty() ? "" : core::visible(letter->events.back().detail, 120)});
    }
    std::cout << core::text_table(rows);
  }
  if (!chosen.records.empty()) {
    std::vector<core::TableRow> rows{{"RECORD", "STATE", "REFUSED", "BY", "CODE", "WHY"}};
    for (const RefusedRecord* record : chosen.records) {
      rows.push_back({core::visible(record->id, 80),
                      record->act.empty() ? "refused" : core::visible(record->act, 20),
                      core::to_rfc3339(record->at), core::visible(record->component, 40),
                      core::visible(record->code, 40), core::visible(record->detail, 120)});
    }
    std::cout << core::text_table(rows);
  }
  return kOk;
}

int dlq_show(const DlqOptions& options) {
  Dlq dlq;
  if (const int code = open_dlq(options, dlq); code != kOk) return code;
  const auto chosen = named_letters(dlq, options);
  if (!chosen) return refuse(chosen.error());
  for (const DeadLetter* letter : chosen->letters) {
    std::cout << (options.json ? core::to_json(letter_value(*letter, true)) + "\n"
                               : letter_text(*letter));
  }
  for (const RefusedRecord* record : chosen->records) {
    std::cout << (options.json ? core::to_json(refused_value(*record, true)) + "\n"
                               : refused_text(*record));
  }
  return kOk;
}

int dlq_replay(const DlqOptions& options) {
  Dlq dlq;
  if (const int code = open_dlq(options, dlq); code != kOk) return code;
  const auto chosen = named_letters(dlq, options);
  if (!chosen) return refuse(chosen.error());
  TopicView view;
  if (!chosen->letters.empty()) {
    const auto read = read_view(dlq.looking.transport(), view, kDlqPatience);
    if (!read) return refuse(read.error());
  }
  std::vector<core::OutRecord> records;
  std::vector<LetterWord> words;
  plan_letters(*chosen, options, view, records, words);
  plan_records(*chosen, options, records, words);
  if (!options.dry_run) {
    if (auto written = write_letters(dlq.looking, records); !written)
      return refuse(written.error());
  }
  return say_words(words, options.json);
}

int dlq_discard(const DlqOptions& options) {
  Dlq dlq;
  if (const int code = open_dlq(options, dlq); code != kOk) return code;
  const auto chosen = named_letters(dlq, options);
  if (!chosen) return refuse(chosen.error());
  const core::WallTime now = core::SystemClock().now();
  const std::string by = this_person();
  std::vector<core::OutRecord> records;
  std::vector<LetterWord> words;
  const std::string what = options.dry_run ? "would be discarded" : "discarded";
  for (const DeadLetter* letter : chosen->letters) {
    const std::string& id = letter->notification.notification_id;
    records.push_back(command_audit(
        "dead_letter.discarded", id,
        core::ValueMap{{"integration", letter->notification.integration}, {"note", options.note}},
        core::Value(), now));
    records.push_back(
        letter_act_record(id, letter->notification.integration, {"discard", by, options.note, ""}));
    words.push_back({id, what, false});
  }
  for (const RefusedRecord* record : chosen->records) {
    if (!record->act.empty()) {  // counted once
      words.push_back({record->id, "was seen to before: " + record->act, true});
      continue;
    }
    records.push_back(command_audit(
        "refused_record.discarded", record->id,
        core::ValueMap{{"topic", record->topic}, {"note", options.note}}, core::Value(), now));
    records.push_back(refused_act_record(*record, "discard", by, options.note));
    words.push_back({record->id, what, false});
  }
  if (!options.dry_run) {
    if (auto written = write_letters(dlq.looking, records); !written)
      return refuse(written.error());
  }
  return say_words(words, options.json);
}

}  // namespace tocsin::app
