package treecheck

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// phrase is what readers of English stumble over, and what to write instead.
type phrase struct {
	part    string // of every match, in lower case: texts without it are not searched
	pattern string // in lower case
	instead string
	fine    string // a pattern of matches that are good English; empty: none
	readers bool   // only texts of users are held to it, not comments
}

var phrases = []phrase{
	{part: "whoever", pattern: `\bwhoever\b`, instead: "the user who, anyone who, the caller"},
	{part: " on", pattern: `\b(?:bring|brings|bringing|brought) (?:(?:it|them|him|her|(?:the|a|an|one) \S+) )?on\b`, instead: "advance, complete"},
	{part: "mend", pattern: `\bmend(?:s|ed|ing)?\b`, instead: "fix"},
	{part: "stranger", pattern: `\bstrangers?\b`, instead: "anonymous callers, newcomers"},
	{part: "bec", pattern: `\bbec(?:omes?|ame|oming) of\b`, instead: "happens to"},
	{part: "to sleep", pattern: `\b(?:go|goes|going|went|put|puts|putting) to sleep\b`, instead: "passivate"},
	{part: " no ", pattern: `\b(?:\S+ )?(?:is|are) no \w+`, fine: `^there |no (?:longer|more|less|need)$`, instead: "is not a"},
	{part: "has none", pattern: `\bhas none\b`, instead: "is empty, without one", readers: true},
	{part: "no such one", pattern: `\bno such one\b`, instead: "say the noun again"},
	{part: "its like", pattern: `\bits likes?\b`, instead: "say the noun again"},
	{part: "the latter", pattern: `\bthe latter\b`, instead: "say the noun again"},
	{part: "by ", pattern: `\bby (?:itself|themselves)\b`, instead: "automatically, in the background, on its own"},
	{part: "come", pattern: `\b(?:timer|event|error|incident)s? (?:comes?|has come|have come)\b`, fine: `s come$`, instead: "fires, is raised, is delivered"},
	{part: "from nothing", pattern: `\bfrom nothing\b`, instead: "from scratch"},
	{part: "d day", pattern: `\b(?:good|bad) days?\b`, instead: "normal operation, incidents"},
	{part: "nobody knows", pattern: `\bnobody knows\b`, instead: "the outcome is unknown"},
	{part: " after", pattern: `\blook(?:s|ed|ing)? after\b`, instead: "manage"},
	{part: " a second", pattern: `(?:[0-9]|\b(?:request|event|querie|operation|instance|write|read|commit|byte|step|row|time|deliverie|batche|create|task)s) a second\b`, instead: "per second"},
	{part: "tak", pattern: `\b(?:takes?|taking) (?:a|an|no|no more|the|its|new|all|more) (?:requests?|calls?|connections?|writes)\b`, instead: "accept, handle"},
	{part: " alone", pattern: `\b(?:stands?|stood|standing) alone\b`, instead: "standalone, a single node"},
	{part: " behind", pattern: `\b(?:comes?|came|coming|stands?|stood|standing|lies?|waits?|waiting) behind\b`, instead: "after"},
	{part: "of no ", pattern: `\bof no (?:use|known)\b`, instead: "useless, unknown"},
	{part: "goes without", pattern: `\bgoes without\b`, instead: "cannot be combined with"},
	{part: " of room", pattern: `\b(?:want|lack) of room\b`, instead: "because it was full"},
	{part: "see to", pattern: `\bsee to\b`, instead: "check, ensure"},
	{part: "anew", pattern: `\banew\b`, instead: "again, from scratch"},
	{part: "demand", pattern: `\bdemand(?:s|ed|ing)\b`, instead: "require"},
	{part: " who may", pattern: `\b(?:those|everybody|everyone|users|people|anybody|somebody) who may\b`, instead: "users who can"},
	{part: " nothing", pattern: `\bsays? nothing\b`, instead: "is empty, does not say"},
	{part: "judge", pattern: `\bjudge[sd]?\b`, instead: "evaluate"},
	{part: "requests at once", pattern: `\brequests at once\b`, instead: "concurrent requests"},
	{part: " fault", pattern: `\b(?:is|as) a fault\b|\b(?:no|all|has|have|with) faults\b`, instead: "error, problem", readers: true},
}

func TestWords(t *testing.T) { holds(t, checkWords()) }

// checkWords finds phrases in documents, in the pages' English, and in comments of
// declarations and strings of the program. Licenses and records of measurements are as they are.
func checkWords() check {
	patterns := make([]*regexp.Regexp, len(phrases))
	for i, p := range phrases {
		patterns[i] = regexp.MustCompile(p.pattern)
	}
	return func(t *testing.T, tree fs.FS) (faults []string) {
		look := func(where, text string, readers bool) {
			text = strings.ToLower(oneLine(text))
			for i, p := range phrases {
				if p.readers && !readers || !strings.Contains(text, p.part) {
					continue
				}
				for _, hit := range patterns[i].FindAllString(text, -1) {
					if p.fine == "" || !regexp.MustCompile(p.fine).MatchString(hit) {
						faults = append(faults, fmt.Sprintf("%s: %q: write: %s", where, hit, p.instead))
					}
				}
			}
		}
		for _, s := range sources(t, tree) {
			if !s.IsTest() && !ast.IsGenerated(s.Syntax) {
				wordsOf(s, look)
			}
		}
		for name, text := range texts(t, tree, hasWords) {
			line := 1
			for _, paragraph := range strings.Split(text, "\n\n") {
				look(fmt.Sprintf("%s:%d", name, line), paragraph, true)
				line += strings.Count(paragraph, "\n") + 2
			}
		}
		return faults
	}
}

// hasWords holds for documents, and for the files with the pages' English.
func hasWords(name string) bool {
	isRecord := strings.HasPrefix(name, "bench/results/") || strings.HasPrefix(name, "gateway/console/dist/")
	return path.Ext(name) == ".md" && !isRecord || strings.HasPrefix(name, "gateway/console/web/src/") && path.Base(name) == "en.ts"
}

// wordsOf passes on the comments of declarations and the strings of a file.
func wordsOf(s *source, look func(where, text string, readers bool)) {
	at := func(pos token.Pos) string { return fmt.Sprintf("%s:%d", s.Path, s.Set.Position(pos).Line) }
	comment := func(groups ...*ast.CommentGroup) {
		for _, group := range groups {
			if group != nil {
				look(at(group.Pos()), group.Text(), false)
			}
		}
	}
	comment(s.Syntax.Doc)
	ast.Inspect(s.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			comment(n.Doc)
		case *ast.GenDecl:
			comment(n.Doc)
		case *ast.TypeSpec:
			comment(n.Doc, n.Comment)
		case *ast.ValueSpec:
			comment(n.Doc, n.Comment)
		case *ast.Field:
			comment(n.Doc, n.Comment)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && strings.Contains(text, " ") {
				look(at(n.Pos()), text, true)
			}
		}
		return true
	})
}
