#include "collectors/hook/publish/raw_capture.h"

#include <utility>

#include "collectors/hook/capture/tensor_math.h"

namespace tocsin::hook {

std::uint64_t RawCapture::copy(const LentTensor& tensor, const Name& name) {
  const core::Dtype dtype = tensor.dtype == core::Dtype::unknown ? name.dtype : tensor.dtype;
  const std::uint64_t count = elements(tensor.shape);
  const std::size_t width = core::size_of(dtype);
  if (count == 0) return 0;
  copied_ = true;
  const std::uint64_t bytes = count * width;
  const bool pieces = layout_of(tensor.shape, tensor.strides) != Layout::contiguous;
  if (width == 0 || (pieces && bytes > kMostGathered)) {
    queue_->skip(RawSkip::unreadable, bytes);
    return 0;
  }
  if (!queue_->admit(steps_.global_step(), bytes)) return 0;
  RawTensor out;
  if (!pieces) {
    const auto* data = static_cast<const std::byte*>(tensor.data);
    out.data.assign(data, data + bytes);
  } else if (!gather(tensor.data, width, tensor.shape, tensor.strides, out.data)) {
    queue_->skip(RawSkip::unreadable, bytes);
    return 0;
  }
  out.header = frames_.stamp();
  out.name = name.hash;
  out.text = name.text;
  out.meta = core::meta::make(dtype, name.role, tensor.flags);
  out.dtype = dtype;
  out.dims.assign(tensor.shape.begin(), tensor.shape.end());
  queue_->push(std::move(out));
  return bytes;
}

void RawCapture::sent() {
  if (!std::exchange(copied_, false)) return;
  queue_->wake();
  for (const RawSkip reason : queue_->take_news()) announcer_.skipped_raw(to_string(reason));
}

}  // namespace tocsin::hook
