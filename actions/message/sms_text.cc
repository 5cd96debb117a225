#include "actions/message/sms_text.h"

#include <array>
#include <cstdint>
#include <utility>

#include "actions/message/episode_words.h"
#include "actions/message/headline.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMostParts = 2;
constexpr std::string_view kCut = "...";
constexpr std::size_t kLeast = 12;  // bytes: less of a text says nothing

/// The character at `at`, and the bytes that it has.
std::pair<std::uint32_t, std::size_t> character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  if (first < 0x80U) return {first, 1};
  if (first < 0xE0U) return {(first & 0x1FU) << 6U | (byte(at + 1) & 0x3FU), 2};
  if (first < 0xF0U) {
    return {(first & 0x0FU) << 12U | (byte(at + 1) & 0x3FU) << 6U | (byte(at + 2) & 0x3FU), 3};
  }
  return {(first & 0x07U) << 18U | (byte(at + 1) & 0x3FU) << 12U | (byte(at + 2) & 0x3FU) << 6U |
              (byte(at + 3) & 0x3FU),
          4};
}

/// Septets of a character in the alphabet of GSM 03.38; 0: it is not in it.
std::size_t septets(std::uint32_t c) {
  static constexpr std::string_view kAscii =
      "\n\r !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
  static constexpr std::string_view kTwice = "^{}\\[~]|\f";
  static constexpr std::u32string_view kOthers = U"£¥èéùìòÇØøÅåΔΦΓΛΩΠΨΣΘΞÆæßÉ¤¡ÄÖÑÜ§¿äöñüà";
  if (c < 0x80U) {
    const char ascii = static_cast<char>(c);
    if (kAscii.find(ascii) != std::string_view::npos) return 1;
    return kTwice.find(ascii) != std::string_view::npos ? 2 : 0;
  }
  if (c == U'€') return 2;
  return kOthers.find(static_cast<char32_t>(c)) != std::u32string_view::npos ? 1 : 0;
}

std::size_t parts_of(std::size_t units, std::size_t alone, std::size_t of_several) {
  if (units <= alone) return 1;
  return (units + of_several - 1) / of_several;
}

/// `text` cut between two characters and marked, so that `before`, it and `rest` are two parts; empty: too little
/// of it fits.
std::string fitting(const std::string& before, const std::string& text, const std::string& rest) {
  const auto fits = [&](const std::string& middle) {
    return sms_parts(before + middle + rest) <= kMostParts;
  };
  if (fits(text)) return text;
  std::size_t end = text.size();
  while (end > 0) {
    do {
      --end;
    } while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
    std::string cut = text.substr(0, end) + std::string(kCut);
    if (end > kLeast && fits(cut)) return cut;
  }
  return {};
}

}  // namespace

std::size_t sms_parts(std::string_view text) {
  std::size_t gsm = 0;
  std::size_t ucs2 = 0;
  bool plain = true;
  for (std::size_t at = 0; at < text.size();) {
    const auto [c, bytes] = character(text, at);
    const std::size_t count = septets(c);
    plain = plain && count > 0;
    gsm += count;
    ucs2 += c > 0xFFFFU ? 2 : 1;
    at += bytes;
  }
  return plain ? parts_of(gsm, 160, 153) : parts_of(ucs2, 70, 67);
}

std::string sms_plain(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kWritten{{
      {"\u2013", "-"},
      {"\u2014", "-"},
      {"\u2026", "..."},
      {"\u2018", "'"},
      {"\u2019", "'"},
      {"\u201c", "\""},
      {"\u201d", "\""},
      {"\u00a0", " "},
      {"\u00d7", "x"},
      {"\u2022", "-"},
      {"\u2265", ">="},
      {"\u2264", "<="},
  }};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character(text, at).second;
    std::string_view one = text.substr(at, bytes);
    for (const auto& [sign, written] : kWritten) {
      if (one == sign) {
        one = written;
        break;
      }
    }
    out += one;
    at += bytes;
  }
  return out;
}

std::string sms_text(const core::Notification& notification) {
  const std::string title = sms_plain(headline(notification));
  const core::NotifiedIssue* lead = lead_of(notification);
  if (lead == nullptr) return fitting({}, title, {});
  const core::Issue& issue = lead->issue;
  const std::string id = issue.event_id.empty() ? "" : "\n" + core::visible(issue.event_id, 60);
  std::string out = fitting({}, title, id);
  if (!notification.minimal && out == title) {
    out += fitting(out, "\n" + sms_plain(first_line(issue)), id);
  }
  return out + id;
}

}  // namespace tocsin::actions
