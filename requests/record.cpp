#include "requests/record.hpp"

namespace hipress::requests {

void Record::describe(io::Document& schema, std::string_view help) {
  io::Document described = {{"type", *schema.find("type")}, {"description", help}};
  described.update(schema);
  schema = std::move(described);
}

void Record::declare(std::string_view name, io::Document schema, std::string_view help,
                     bool always) {
  describe(schema, help);
  made_[name] = std::move(schema);
  if (always) required_.push_back(name);
}

io::Document Record::take() {
  if (!is_schema()) return std::move(made_);
  return {{"type", "object"},
          {"properties", std::move(made_)},
          {"required", std::move(required_)},
          {"additionalProperties", false}};
}

}  // namespace hipress::requests
