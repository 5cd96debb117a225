// Silences as a file: `silence export`, `silence import`.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "app/cli/looking.h"
#include "app/cli/silence_commands.h"
#include "app/cli/silence_writer.h"
#include "app/process/exit_code.h"
#include "app/view/silence_records.h"
#include "app/view/topic_view.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "routing/routing.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using routing::Silence;

constexpr auto kFilePatience = 60s;
constexpr std::size_t kMostOfAFile = routing::kMaxSilences * routing::kMaxSilenceBytes;

core::Result<std::string> text_of(const std::string& file) {
  std::ostringstream text;
  if (file == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) return core::not_found("cannot read " + file);
  text << in.rdbuf();
  return text.str();
}

core::Result<std::vector<Silence>> read_silences(const std::string& text) {
  const auto whole = core::parse_json(text, kMostOfAFile);
  if (!whole) return whole.error();
  const auto* list = core::as<core::ValueList>(*whole);
  if (list == nullptr) {
    return core::invalid_argument("expected a list of silences, as `tocsin silence export` writes");
  }
  std::vector<Silence> out;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto silence = routing::read_silence(core::to_json((*list)[i]));
    if (!silence) return silence.error().in("silence " + std::to_string(i + 1));
    out.push_back(std::move(*silence));
  }
  return out;
}

// One that says the same until the same time is there already.
bool known_already(const Silence& silence, const std::map<std::string, Silence>& known) {
  return std::any_of(known.begin(), known.end(), [&](const auto& entry) {
    const Silence& other = entry.second;
    return matcher_sets(other) == matcher_sets(silence) && other.ends_at == silence.ends_at &&
           other.recurrence == silence.recurrence && other.actions == silence.actions;
  });
}

}  // namespace

int silence_export(const SilenceOptions& options) {
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened)
    return refuse(opened.error());
  TopicView view;
  if (auto read = read_view(looking.transport(), view, kFilePatience); !read)
    return refuse(read.error());
  const core::WallTime now = core::SystemClock().now();
  std::string out;
  for (const auto& [id, silence] : view.silences()) {
    if (!options.all && silence.ends_at <= now) continue;
    out += (out.empty() ? "[\n" : ",\n") + silence_json(silence);
  }
  std::cout << (out.empty() ? "[]" : out + "\n]") << "\n";
  return kOk;
}

int silence_import(const SilenceOptions& options) {
  const auto text = text_of(options.file);
  if (!text) return refuse(text.error());
  const auto given = read_silences(*text);
  if (!given) {
    std::cerr << "tocsin: " << options.file << ": " << given.error().message << "\n";
    return kUsage;
  }
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened)
    return refuse(opened.error());
  TopicView view;
  if (auto read = read_view(looking.transport(), view, kFilePatience); !read)
    return refuse(read.error());
  const core::WallTime now = core::SystemClock().now();
  std::vector<Silence> fresh;
  std::size_t over = 0;
  std::size_t there = 0;
  for (const Silence& silence : *given) {
    if (silence.ends_at <= now) {
      ++over;
    } else if (known_already(silence, view.silences())) {
      ++there;
    } else {
      const std::size_t known = view.silences().size() + fresh.size();
      // Two of one author and matchers have ids of their own.
      Silence made = new_silence(silence, now + std::chrono::nanoseconds(fresh.size()));
      made.replaces.clear();
      if (auto good = routing::check_asked(made, known, now, options.force); !good) {
        std::cerr << "tocsin: " << options.file << ": silence " << silence.id << ": "
                  << good.error().message << "; nothing was imported\n";
        return kUsage;
      }
      fresh.push_back(std::move(made));
    }
  }
  if (!fresh.empty()) {
    if (auto written = write_silences(looking.transport(), fresh, view.silences(), now); !written)
      return refuse(written.error());
  }
  std::cout << "imported " << fresh.size() << "; skipped " << over << " expired and " << there
            << " that are there already\n";
  return kOk;
}

}  // namespace tocsin::app
