// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The names that Rust sources define.

use std::collections::HashSet;

use arctic_source::Token;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ImplItem, Item, TraitItem, Type, UseTree};

/// The names in a set of sources.
#[derive(Default)]
pub struct Names {
    /// Names of items, associated items, fields, variants and modules.
    defined: HashSet<String>,
    /// Names with the type, trait or module that they are part of.
    members: HashSet<(String, String)>,
    /// Identifiers in calls of macros that stand for items: the tables of registers and commands define names by them.
    in_macros: HashSet<String>,
    /// Words in string literals: names of registers and variables, options, keys of documents.
    in_strings: HashSet<String>,
}

impl Names {
    /// Adds the names of a source file, which is the module `module`.
    ///
    /// # Errors
    /// If it is not Rust.
    pub fn add(&mut self, module: &str, text: &str) -> syn::Result<()> {
        let tokens: TokenStream = text.parse()?;
        let file: syn::File = syn::parse2(tokens.clone())?;
        self.defined.insert(module.to_owned());
        let mut visitor = Visitor { names: self, parent: module.to_owned() };
        visitor.visit_file(&file);
        self.add_strings(tokens);
        Ok(())
    }

    /// Adds a name that no source defines, such as that of a package.
    pub fn define(&mut self, name: &str) {
        self.defined.insert(name.to_owned());
    }

    /// Returns whether a source defines `name`, or has it as a word of a string.
    pub fn has(&self, name: &str) -> bool {
        self.defined.contains(name) || self.in_macros.contains(name) || self.in_strings.contains(name)
    }

    /// Returns whether `name` is part of `parent`: of a type, a trait or a module.
    pub fn has_member(&self, parent: &str, name: &str) -> bool {
        self.members.contains(&(parent.to_owned(), name.to_owned()))
            || (self.in_macros.contains(parent) && self.in_macros.contains(name))
    }

    fn add_strings(&mut self, tokens: TokenStream) {
        let mut trees = tokens.into_iter().peekable();
        // A comment on an item is the attribute `doc = "..."`.
        if trees.peek().is_some_and(|first| first.to_string() == "doc") {
            return;
        }
        for tree in trees {
            match tree {
                TokenTree::Group(group) => self.add_strings(group.stream()),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    if text.contains('"') {
                        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                        self.in_strings.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }

    fn add_macro(&mut self, stream: TokenStream) {
        let words = arctic_source::tokens(stream).into_iter().filter(Token::is_word);
        self.in_macros.extend(words.map(|token| token.text));
    }
}

struct Visitor<'n> {
    names: &'n mut Names,
    /// The type, trait or module whose parts are visited.
    parent: String,
}

impl Visitor<'_> {
    fn define(&mut self, name: impl ToString) {
        let name = name.to_string();
        self.names.members.insert((self.parent.clone(), name.clone()));
        self.names.defined.insert(name);
    }

    fn within(&mut self, parent: impl ToString, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.parent, parent.to_string());
        visit(self);
        self.parent = outer;
    }

    /// Adds the names that a `use` declaration makes available in the module.
    fn reexport(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.reexport(&path.tree),
            UseTree::Name(name) => {
                self.names.members.insert((self.parent.clone(), name.ident.to_string()));
            }
            UseTree::Rename(name) => self.define(&name.rename),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.reexport(tree)),
            UseTree::Glob(_) => {}
        }
    }
}

impl<'a> Visit<'a> for Visitor<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        match item {
            Item::Const(item) => self.define(&item.ident),
            Item::Static(item) => self.define(&item.ident),
            Item::Type(item) => self.define(&item.ident),
            Item::Fn(item) => self.define(&item.sig.ident),
            Item::Struct(item) => self.define(&item.ident),
            Item::Enum(item) => self.define(&item.ident),
            Item::Union(item) => self.define(&item.ident),
            Item::Trait(item) => self.define(&item.ident),
            Item::Mod(item) => self.define(&item.ident),
            Item::Use(item) => self.reexport(&item.tree),
            Item::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.define(name);
                }
                self.names.add_macro(item.mac.tokens.clone());
            }
            _ => {}
        }
        match item {
            Item::Struct(item) => self.within(&item.ident, |this| visit::visit_item_struct(this, item)),
            Item::Enum(item) => self.within(&item.ident, |this| visit::visit_item_enum(this, item)),
            Item::Trait(item) => self.within(&item.ident, |this| visit::visit_item_trait(this, item)),
            Item::Mod(item) => self.within(&item.ident, |this| visit::visit_item_mod(this, item)),
            Item::Impl(item) => match &*item.self_ty {
                Type::Path(path) => {
                    let name = path.path.segments.last().map(|segment| segment.ident.to_string());
                    self.within(name.unwrap_or_default(), |this| visit::visit_item_impl(this, item));
                }
                _ => visit::visit_item_impl(self, item),
            },
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        match item {
            ImplItem::Fn(item) => self.define(&item.sig.ident),
            ImplItem::Const(item) => self.define(&item.ident),
            ImplItem::Type(item) => self.define(&item.ident),
            ImplItem::Macro(item) => self.names.add_macro(item.mac.tokens.clone()),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'a TraitItem) {
        match item {
            TraitItem::Fn(item) => self.define(&item.sig.ident),
            TraitItem::Const(item) => self.define(&item.ident),
            TraitItem::Type(item) => self.define(&item.ident),
            _ => {}
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if let Some(name) = &field.ident {
            self.define(name);
        }
    }

    fn visit_variant(&mut self, variant: &'a syn::Variant) {
        self.define(&variant.ident);
        self.within(&variant.ident, |this| visit::visit_variant(this, variant));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Names {
        let mut names = Names::default();
        names.add("m", text).unwrap();
        names
    }

    #[test]
    fn items_and_their_parts_are_defined() {
        let names = names(
            "mod n { pub use a::{B, c as d}; fn f() {} } struct S { field: u8 } impl T for S { const C: u8 = 1; fn g() {} }
             enum E { V { inner: u8 } } trait T { fn h(); } table! { 0x24 MI_NOOP => Noop; } fn k() { let local = \"a key_1\"; }
             macro_rules! table { () => {} }",
        );
        for name in
            ["n", "d", "f", "S", "field", "C", "g", "E", "V", "inner", "T", "h", "Noop", "k", "key_1", "table", "m"]
        {
            assert!(names.has(name), "{name}");
        }
        assert!(!names.has("local") && !names.has("B"));
        for (parent, name) in
            [("n", "B"), ("n", "d"), ("n", "f"), ("S", "field"), ("S", "g"), ("E", "V"), ("T", "h"), ("m", "k")]
        {
            assert!(names.has_member(parent, name), "{parent}::{name}");
        }
        assert!(!names.has_member("S", "h") && !names.has_member("E", "inner"));
    }

    #[test]
    fn comments_define_nothing() {
        assert!(!names("/// `gone`\nfn f() { /* gone */ }").has("gone"));
    }
}
