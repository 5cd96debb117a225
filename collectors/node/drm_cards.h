// AMD's GPUs as the kernel's driver shows them in sysfs: no library is needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectors/node/proc_file.h"

namespace tocsin::collectors {

/// One card of the driver amdgpu. What its kernel does not offer stays away.
class DrmCard {
 public:
  DrmCard(const std::string& folder, std::string id);

  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  // Each nullopt: this kernel or card does not say, or the card was taken away.
  [[nodiscard]] std::optional<double> busy_percent() { return number(busy_); }
  [[nodiscard]] std::optional<double> memory_used() { return number(used_); }
  [[nodiscard]] std::optional<double> memory_total() { return number(total_); }
  [[nodiscard]] std::optional<double> watts();
  [[nodiscard]] std::optional<double> celsius();

 private:
  static std::optional<double> number(ProcFile& file);

  std::string id_;
  ProcFile busy_, used_, total_;
  std::optional<ProcFile> power_, temperature_;
};

/// Those below <sys>/class/drm that say how busy they are, in the order of their names.
std::vector<DrmCard> drm_cards(const std::string& sys);

}  // namespace tocsin::collectors
