package workflow_test

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"troupe/actors/workflow/workflowtest"
)

//go:embed testdata/definition
var definitions embed.FS

// Definitions that several tests have.
var (
	above, below, deepest = definition("@above"), definition("@below"), definition("@deepest")
	remind, minutely      = definition("@remind"), definition("@minutely")
	faulty, desk          = definition("@faulty"), definition("@desk")
)

var (
	machines = regexp.MustCompile(`(?m)^  m#([0-9]+)(:.*\n)`)
	runs     = regexp.MustCompile(`<([a-z])\*([0-9]+)>`)
	long     = regexp.MustCompile(`x{200,}`)
)

// definition is what a script or a test has for a definition: @NAME is the one in testdata/definition, "stock ID VERSION INDEX …" is
// workflowtest.Stock, and anything else is its text.
func definition(text string) string {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		stored, err := definitions.ReadFile("testdata/definition/" + name + ".yaml")
		if err != nil {
			panic(err)
		}
		text = string(stored)
	}
	if of := strings.Fields(text); len(of) > 2 && of[0] == "stock" {
		version, _ := strconv.Atoi(of[2])
		return workflowtest.Stock(of[1], version, of[3:]...)
	}
	if text == "" {
		return ""
	}
	return machines.ReplaceAllStringFunc(text+"\n", func(line string) (all string) {
		of := machines.FindStringSubmatch(line)
		count, _ := strconv.Atoi(of[1])
		for n := range count {
			all += strings.ReplaceAll("  m#"+of[2], "#", strconv.Itoa(n))
		}
		return all
	})
}

// expand writes out what is as long as it says, and short is the other way.
func expand(text string) string {
	return runs.ReplaceAllStringFunc(text, func(run string) string {
		of := runs.FindStringSubmatch(run)
		count, _ := strconv.Atoi(of[2])
		return strings.Repeat(of[1], count)
	})
}

func short(text string) string {
	return long.ReplaceAllStringFunc(text, func(run string) string { return fmt.Sprintf("<x*%d>", len(run)) })
}
