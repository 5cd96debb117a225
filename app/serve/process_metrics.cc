#include "app/serve/process_metrics.h"

#include <unistd.h>

#include <charconv>
#include <concepts>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "app/process/version.h"
#include "config/secret_reads.h"
#include "core/process_identity.h"
#include "core/value.h"

namespace tocsin::app {
namespace {

std::optional<double> number(const std::string& text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

double real(std::integral auto number) { return static_cast<double>(number); }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

std::optional<core::ProcessStat> stat_of(const std::string& proc) {
  std::ifstream in(proc + "/self/stat");
  return core::parse_process_stat(
      std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
}

std::optional<double> boot_time(const std::string& proc) {
  std::ifstream in(proc + "/stat");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("btime ")) return number(line.substr(6));
  }
  return std::nullopt;
}

std::optional<double> open_files(const std::string& proc) {
  std::error_code error;
  double count = -1;  // the folder itself is open while it is read
  for (std::filesystem::directory_iterator at(proc + "/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    ++count;
  }
  if (error || count < 0) return std::nullopt;
  return count;
}

std::optional<double> most_files(const std::string& proc) {
  std::ifstream in(proc + "/self/limits");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("Max open files")) continue;
    const auto words = words_of(line);
    if (words.size() < 4) return std::nullopt;
    return words[3] == "unlimited" ? std::numeric_limits<double>::infinity() : number(words[3]);
  }
  return std::nullopt;
}

class Exposition {
 public:
  void add(std::string_view name, std::string_view type, std::string_view help,
           std::optional<double> value) {
    if (!value) return;
    head(name, type, help);
    text_ += std::string(name) + " " + shown(*value) + "\n";
  }
  void add_info(std::string_view name, std::string_view help, const std::string& labels) {
    head(name, "gauge", help);
    text_ += std::string(name) + "{" + labels + "} 1\n";
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void head(std::string_view name, std::string_view type, std::string_view help) {
    text_ += "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " +
             std::string(name) + " " + std::string(type) + "\n";
  }
  static std::string shown(double value) {
    return value == std::numeric_limits<double>::infinity() ? "+Inf" : core::to_json(value);
  }
  std::string text_;
};

}  // namespace

std::string process_metrics(const std::string& proc) {
  Exposition out;
  out.add_info("tocsin_build_info", "version and compiler of this program",
               "version=\"" + build_version() + "\",compiler=\"" + build_compiler() + "\"");
  out.add("tocsin_router_secret_reloads_total", "counter",
          "files of credentials that held something else than at the opening before",
          real(config::secret_reloads()));
  const auto stat = stat_of(proc);
  const double ticks = real(sysconf(_SC_CLK_TCK));
  if (stat) {
    out.add("process_cpu_seconds_total", "counter", "user and system time of this process",
            (real(stat->user_ticks) + real(stat->system_ticks)) / ticks);
  }
  out.add("process_open_fds", "gauge", "open file descriptors", open_files(proc));
  out.add("process_max_fds", "gauge", "most file descriptors that may be open", most_files(proc));
  if (stat) {
    out.add("process_virtual_memory_bytes", "gauge", "size of the address space",
            real(stat->virtual_bytes));
    out.add("process_resident_memory_bytes", "gauge", "memory that is in use",
            real(stat->resident_pages) * real(sysconf(_SC_PAGESIZE)));
    out.add("process_threads", "gauge", "threads of this process", real(stat->threads));
  }
  if (const auto boot = boot_time(proc); stat && boot) {
    out.add("process_start_time_seconds", "gauge", "when this process started, since 1970",
            *boot + real(stat->start_ticks) / ticks);
  }
  return out.take();
}

}  // namespace tocsin::app
