// The part of {fmt} that is not a template, compiled once: included in every unit it costs each of
// them four seconds, and Debian has no static libfmt, which `ic` needs to be one file.
#include <fmt/format-inl.h>

namespace fmt {
namespace detail {

template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<buffer_context<char>>,
                         locale_ref);
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;

}  // namespace detail
}  // namespace fmt
