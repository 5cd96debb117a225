#include "app/serve/gzip.h"

#include <zlib.h>

#include <algorithm>

namespace tocsin::app {
namespace {

constexpr std::size_t kWorthIt = 1024;
constexpr int kGzipWindow = 15 + 16;  // 16: with gzip's header
constexpr int kFast = 1;              // lists shrink tenfold all the same
constexpr int kMemory = 8;

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

bool gzip_refused(std::string_view parameters) {
  const std::size_t q = parameters.find("q=");
  if (q == std::string_view::npos) return false;
  const std::string_view weight = without_blanks(parameters.substr(q + 2));
  return weight.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool takes_gzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const std::size_t comma = std::min(accept_encoding.find(','), accept_encoding.size());
    const std::string_view one = accept_encoding.substr(0, comma);
    const std::size_t semicolon = std::min(one.find(';'), one.size());
    if (without_blanks(one.substr(0, semicolon)) == "gzip")
      return !gzip_refused(one.substr(semicolon));
    accept_encoding.remove_prefix(std::min(comma + 1, accept_encoding.size()));
  }
  return false;
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, kFast, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(whole ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

void compress(const HttpRequest& request, HttpAnswer& answer) {
  if (answer.stream || answer.body.size() < kWorthIt) return;
  answer.headers.emplace_back("Vary", "Accept-Encoding");
  if (!takes_gzip(request.header("accept-encoding"))) return;
  std::string small = gzip(answer.body);
  if (small.empty()) return;
  answer.body = std::move(small);
  answer.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace tocsin::app
