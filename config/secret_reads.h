// Whether credentials in files have changed while the program runs: for a metric.
#pragma once

#include <cstdint>
#include <string_view>

namespace tocsin::config {

/// What the file of a secret held when it was opened. Any thread; waits for none. Of 512 files the
/// changes are counted, of further ones they are not.
void note_secret_read(std::string_view path, std::string_view value) noexcept;
/// How often a file held something else than at the opening before.
std::uint64_t secret_reloads() noexcept;

}  // namespace tocsin::config
