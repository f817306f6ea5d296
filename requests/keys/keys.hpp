#pragma once

#include <span>

#include "io/document.hpp"
#include "requests/keys/key.hpp"

/// All tables of keys together, as JSON schemas.
namespace hipress::requests {

/// All forms, in the order of the page of reference.
std::span<const ResultForm> result_forms();

/// The JSON schema of one form. Objects have no other members than its keys.
io::Document schema(const ResultForm& form);

/// Schemas of all forms, in lists, by what they are of.
io::Document result_schemas();

}  // namespace hipress::requests
