#include "io/build_id.hpp"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "io/digest.hpp"

namespace hipress::io {
namespace {

struct Search {
  std::uintptr_t inside = 0;  ///< an address in the module that is looked for
  std::string found;
};

bool contains(const dl_phdr_info& module, std::uintptr_t address) {
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module.dlpi_phdr[i];
    const std::uintptr_t begin = module.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && address >= begin && address - begin < part.p_memsz) return true;
  }
  return false;
}

/// Build ID in an ELF note segment, as hexadecimal digits; empty if absent.
std::string build_id_of(std::span<const std::byte> notes) {
  constexpr std::string_view kOwner("GNU\0", 4);
  const auto padded = [](std::size_t length) { return (length + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof(head));
    notes = notes.subspan(sizeof(head));
    const std::size_t name = padded(head.n_namesz), content = padded(head.n_descsz);
    if (name + content > notes.size()) return {};
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == kOwner.size() &&
        std::memcmp(notes.data(), kOwner.data(), kOwner.size()) == 0) {
      return to_hex(notes.subspan(name, head.n_descsz));
    }
    notes = notes.subspan(name + content);
  }
  return {};
}

int look(dl_phdr_info* module, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  if (!contains(*module, search.inside)) return 0;
  for (int i = 0; i < module->dlpi_phnum && search.found.empty(); ++i) {
    const ElfW(Phdr)& part = module->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* const begin = reinterpret_cast<const std::byte*>(module->dlpi_addr + part.p_vaddr);
    search.found = build_id_of({begin, part.p_memsz});
  }
  return 1;
}

}  // namespace

std::string build_id() {
  Search search{.inside = reinterpret_cast<std::uintptr_t>(&look), .found = {}};
  ::dl_iterate_phdr(look, &search);
  return search.found;
}

}  // namespace hipress::io
