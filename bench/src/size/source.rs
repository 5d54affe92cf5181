//! One file: its lines, the types it defines, the parameters that are tuples, and the paths it
//! names.

use std::path::{Component, Path, PathBuf};

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, Ident, ImplItem, Item, ItemUse, Type, UseTree, Visibility};

/// A path through modules, such as `["crate", "lane", "Lane"]`.
pub(crate) type ModulePath = Vec<String>;

/// A parsed source file. `shipped` and `tests` count lines with code; blank lines don't count.
#[derive(Debug, Default)]
pub(crate) struct SourceFile {
    /// Relative to the root of the workspace.
    pub(crate) path: PathBuf,
    /// The folder of its crate, such as `engine`.
    pub(crate) crate_name: String,
    pub(crate) shipped: usize,
    pub(crate) tests: usize,
    /// Lines with only a comment, without tests.
    pub(crate) comments: usize,
    pub(crate) type_names: Vec<String>,
    /// `line: name` of each parameter whose type is or contains a tuple.
    pub(crate) tuples: Vec<String>,
    /// Its module, such as `["lane", "run"]`; empty for the root. `None` if it isn't part of a
    /// crate.
    pub(crate) module: Option<ModulePath>,
    /// Paths, from the crate's root, that may refer to another file of its crate.
    pub(crate) imports: Vec<ModulePath>,
    /// What it re-exports by `pub use`: the name here, and the path from the crate's root.
    pub(crate) exports: Vec<(String, ModulePath)>,
}

impl SourceFile {
    /// Reads `text`, the content of the file at `path` below the root.
    pub(crate) fn read(path: &Path, text: &str) -> Result<SourceFile, String> {
        let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let tokens: TokenStream = text.parse().map_err(|error| fault(&error))?;
        let parsed = syn::parse_file(text).map_err(|error| fault(&error))?;
        let names: Vec<&str> = path.components().filter_map(name_of).collect();
        let module = module_of(&names);
        let is_test = is_test(&names);
        let mut marks = Marks {
            code: vec![false; text.lines().count()],
            test: vec![is_test; text.lines().count()],
        };
        marks.code(tokens);
        let mut found = Finder {
            file: SourceFile {
                path: path.to_owned(),
                crate_name: names
                    .iter()
                    .find(|name| **name != "crates")
                    .map(|&name| name.to_owned())
                    .unwrap_or_default(),
                module: module.clone().filter(|_| !is_test),
                ..SourceFile::default()
            },
            marks,
            module: module.unwrap_or_default(),
            depth: 0,
        };
        if !is_test {
            found.visit_file(&parsed);
        }
        let Finder { mut file, marks, .. } = found;
        for (line, (code, test)) in text.lines().zip(marks.code.into_iter().zip(marks.test)) {
            match (code, test) {
                (true, true) => file.tests += 1,
                (true, false) => file.shipped += 1,
                (false, false) if !line.trim().is_empty() => file.comments += 1,
                _ => {}
            }
        }
        Ok(file)
    }
}

fn name_of(component: Component<'_>) -> Option<&str> {
    component.as_os_str().to_str()
}

/// Whether a file has only tests, by its name or its folder.
fn is_test(names: &[&str]) -> bool {
    let by_name = names.last().and_then(|name| name.strip_suffix(".rs")).is_some_and(|stem| {
        // A name such as `server_under_test.rs` is not a test's.
        stem == "tests" || stem.starts_with("test_") || stem.ends_with("_tests")
    });
    by_name || names.contains(&"tests") || names.first() == Some(&"fuzz")
}

/// `crates/engine/src/lane/run.rs` is `["lane", "run"]`.
fn module_of(names: &[&str]) -> Option<ModulePath> {
    let below = names.iter().position(|name| *name == "src")?;
    let (file, folders) = names[below + 1..].split_last()?;
    let mut module: ModulePath = folders.iter().map(|&name| name.to_owned()).collect();
    let stem = file.strip_suffix(".rs")?;
    if !matches!(stem, "lib" | "main" | "mod") {
        module.push(stem.to_owned());
    }
    Some(module)
}

/// What is on each line.
struct Marks {
    code: Vec<bool>,
    test: Vec<bool>,
}

impl Marks {
    fn set(lines: &mut [bool], span: Span) {
        // Lines count from 1.
        lines[span.start().line - 1..span.end().line].fill(true);
    }

    fn code(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => {
                    if group.delimiter() != Delimiter::None {
                        Marks::set(&mut self.code, group.span_open());
                        Marks::set(&mut self.code, group.span_close());
                    }
                    self.code(group.stream());
                }
                // A doc comment is an attribute whose tokens all have the same span.
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    let is_here = |next: &TokenTree| next.span().start() == punct.span().start();
                    let mut is_comment = false;
                    while tokens.next_if(is_here).is_some() {
                        is_comment = true;
                    }
                    if !is_comment {
                        Marks::set(&mut self.code, punct.span());
                    }
                }
                other => Marks::set(&mut self.code, other.span()),
            }
        }
    }
}

/// Visits the shipped parts of a file.
struct Finder {
    file: SourceFile,
    marks: Marks,
    /// The current module: that of the file, and `depth` inline modules.
    module: ModulePath,
    depth: usize,
}

impl Finder {
    /// Marks an item that is built for tests only.
    fn is_test(&mut self, attributes: &[Attribute], span: Span) -> bool {
        let is_test = attributes.iter().any(|attribute| match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => {
                let text = list.tokens.to_string();
                text.starts_with("test") || text.starts_with("all (test")
            }
            _ => false,
        });
        if is_test {
            Marks::set(&mut self.marks.test, span);
        }
        is_test
    }

    fn import(&mut self, names: &[String]) -> Option<ModulePath> {
        let path = match names.first()?.as_str() {
            "crate" => names[1..].to_vec(),
            "self" => [&self.module, &names[1..]].concat(),
            "super" => {
                let up = names.iter().take_while(|name| *name == "super").count();
                let above = self.module.len().checked_sub(up)?;
                [&self.module[..above], &names[up..]].concat()
            }
            // A module below this one, or another crate; which one only the whole crate shows.
            _ => [&self.module, names].concat(),
        };
        self.file.imports.push(path.clone());
        Some(path)
    }

    fn imports(&mut self, tree: &UseTree, above: &mut ModulePath, is_public: bool) {
        let (name, here) = match tree {
            UseTree::Path(path) => {
                above.push(path.ident.to_string());
                self.imports(&path.tree, above, is_public);
                above.pop();
                return;
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.imports(tree, above, is_public));
                return;
            }
            UseTree::Name(name) => (Some(&name.ident), &name.ident),
            UseTree::Rename(rename) => (Some(&rename.ident), &rename.rename),
            UseTree::Glob(_) => {
                self.import(above);
                return;
            }
        };
        let names: ModulePath = above
            .iter()
            .cloned()
            .chain(name.filter(|name| *name != "self").map(Ident::to_string))
            .collect();
        if let Some(path) = self.import(&names)
            && is_public
        {
            self.file.exports.push((here.to_string(), path));
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, defined): (&[Attribute], Option<&Ident>) = match item {
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Union(item) => (&item.attrs, Some(&item.ident)),
            Item::Const(item) => (&item.attrs, None),
            Item::Fn(item) => (&item.attrs, None),
            Item::Impl(item) => (&item.attrs, None),
            Item::Macro(item) => (&item.attrs, None),
            Item::Mod(item) => (&item.attrs, None),
            Item::Static(item) => (&item.attrs, None),
            Item::Type(item) => (&item.attrs, None),
            Item::Use(item) => (&item.attrs, None),
            _ => (&[], None),
        };
        if self.is_test(attributes, item.span()) {
            return;
        }
        self.file.type_names.extend(defined.map(Ident::to_string));
        match item {
            Item::Mod(inline) if inline.content.is_some() => {
                self.module.push(inline.ident.to_string());
                self.depth += 1;
                visit::visit_item(self, item);
                self.depth -= 1;
                self.module.pop();
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            _ => &[],
        };
        if !self.is_test(attributes, item.span()) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.imports(
            &item.tree,
            &mut ModulePath::new(),
            !matches!(item.vis, Visibility::Inherited),
        );
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            let names: ModulePath =
                path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.import(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        for input in &signature.inputs {
            let FnArg::Typed(parameter) = input else { continue };
            let mut tuple = Tuple(false);
            tuple.visit_type(&parameter.ty);
            if tuple.0 {
                self.file.tuples.push(format!(
                    "{}: {}",
                    parameter.span().start().line,
                    signature.ident
                ));
            }
        }
        visit::visit_signature(self, signature);
    }
}

/// Whether a type is or contains a tuple; `()` doesn't count.
struct Tuple(bool);

impl<'ast> Visit<'ast> for Tuple {
    fn visit_type(&mut self, kind: &'ast Type) {
        self.0 |= matches!(kind, Type::Tuple(tuple) if !tuple.elems.is_empty());
        visit::visit_type(self, kind);
    }
}
