package plan

import (
	_ "embed"
	"slices"
	"strings"
)

// otherWords is the answer to words that have no meaning where they are written: words of other tools, and words of plans in the wrong place. A line has
// the words; types of blocks, or names of attributes whose values they are, or nothing for any block; and what to write, where WORD stands for the
// word. The first line for a word and its place is used; those that begin with # are headings.
//
//go:embed otherwords.tsv
var otherWords string

// topLevel stands for the place outside all blocks.
const topLevel = "top"

// Meant returns what to write instead of a word in a type of block, or as the value of an attribute; "" if the table does not have the word.
func Meant(in, word string) string {
	for line := range strings.Lines(otherWords) {
		words, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if slices.Contains(strings.Fields(words), word) {
			if places, write, _ := strings.Cut(rest, "\t"); places == "" || slices.Contains(strings.Fields(places), in) {
				return strings.ReplaceAll(write, "WORD", word)
			}
		}
	}
	return ""
}
