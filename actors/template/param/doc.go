// Package param knows what a parameter of a template is: how one is declared, which declarations a list keeps, and the
// limits and errors that both formats of templates share. It is pure: it computes, and nothing else.
//
//	${name}  ${name#type}  ${name#type#default}  ${name##default}
//
// A caller makes one Collector for a file and a Scanner that fills it. For every piece of text that a declaration
// cannot leave (a text node, an attribute value, a paragraph) it writes the piece, in as many parts as it likes, and
// calls End. Then the Collector has the answer:
//
//	list := param.NewCollector(limits)
//	scanner := param.NewScanner(list)
//	scanner.Write([]byte("Dear ${na")); scanner.Write([]byte("me#text}"))
//	scanner.End()
//	params := list.Params()
//
// Time is linear in the text. Of the text only the declaration that is open is kept, at most Limits.DeclarationBytes.
// The rules are in gateway/INTERFACE.md, "Grammar", and actors/template/DESIGN.md, "What is a declaration (param)".
package param
