package treecheck

import (
	"go/ast"
	"io/fs"
	"slices"
	"testing"
)

// pebbleInside are the types with Pebble's in them that no other type is made of.
var pebbleInside = []string{"pebbleDB", "pebbleView", "CheckOptions", "check"}

func TestPebbleStaysInside(t *testing.T) { holds(t, checkPebbleStaysInside) }

// checkPebbleStaysInside: persistence/internal/engine/pebble.go says what it costs when a type of
// Pebble's is in the fields or the methods of a type that other packages use.
func checkPebbleStaysInside(t *testing.T, tree fs.FS) (faults []string) {
	for _, s := range sources(t, tree) {
		if !within(s.Folder(), "persistence") || s.IsTest() {
			continue
		}
		look := func(owner string, part ast.Node) {
			ast.Inspect(part, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || slices.Contains(pebbleInside, owner) {
					return true
				}
				from, _ := sel.X.(*ast.Ident)
				if from != nil && (from.Name == "sstable" || from.Name == "pebble" && sel.Sel.Name != "WriteOptions" && sel.Sel.Name != "SeqNum") {
					faults = append(faults, s.faultf(sel.Pos(), "%s.%s makes every user of %s compile Pebble: use an interface of pebble.go, or a function", from.Name, sel.Sel.Name, owner))
				}
				return true
			})
		}
		for _, d := range s.Syntax.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						look(typ.Name.Name, typ.Type)
					}
				}
			case *ast.FuncDecl:
				if d.Recv != nil {
					look(receiverName(d), d.Type)
				}
			}
		}
	}
	return faults
}

func receiverName(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
