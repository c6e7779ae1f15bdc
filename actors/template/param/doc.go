// Package param knows what a parameter of a template is: how one is declared, which declarations a list keeps, and the
// limits and errors that both formats of templates share. A caller makes one Collector for a file and a Scanner that
// fills it: for every piece of text that a declaration cannot leave it writes the piece, in as many parts as it likes,
// and calls End. Time is linear in the text, and only the declaration that is open is kept. The rules are in
// gateway/INTERFACE.md, "Grammar", and actors/template/DESIGN.md, "What is a declaration (param)".
package param
