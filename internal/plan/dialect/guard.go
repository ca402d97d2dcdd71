package dialect

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The guard protects HCL's parser and evaluator, which bound neither recursion nor memory: 200 kB of opening brackets overflow
// the parser's stack beyond recovery, and 24 locals that each double the previous one turn 300 bytes into gigabytes. These are its
// bounds on text; eval.go has those on values.
const (
	MaxSource  = 1 << 20  // bytes of a plan or variable file
	maxTokens  = 20_000   // line breaks included; a phase takes about 45
	maxToken   = 4 << 10  // bytes of one literal or name
	maxNesting = 100      // nested brackets and quotes
	maxChain   = 100      // operators in one argument or element: each deepens the syntax tree by one level
	lexWindow  = 16 << 10 // bytes given to the lexer at once
)

// Guard returns the first reason not to parse src, nil if there is none.
//
// The lexer needs over 100 bytes a token, so it must not see a whole hostile text either. It gets one window at a time. Each begins
// after a line break outside any quote, comment and template, where the lexer has no state. A window without such a line break is
// refused: no string may be that long anyway.
func Guard(src []byte, filename string) *hcl.Diagnostic {
	if len(src) > MaxSource {
		return GuardDiag(hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos},
			fmt.Sprintf("%d bytes are more than a plan may have", len(src)), "Write at most 1 MiB.")
	}
	var b bounds
	for pos := hcl.InitialPos; pos.Byte < len(src); {
		window, last := src[pos.Byte:], true
		if len(window) > lexWindow {
			window, last = window[:lexWindow], false
		}
		tokens, _ := hclsyntax.LexConfig(window, filename, pos)
		n := len(tokens)
		if !last {
			n = resumable(tokens)
		}
		endless := n == 0
		if endless {
			n = len(tokens) // another bound may be broken, which is more informative
		}
		for i := range tokens[:n] {
			if d := b.take(&tokens[i]); d != nil {
				return d
			}
		}
		switch {
		case endless:
			return GuardDiag(hcl.Range{Filename: filename, Start: pos, End: pos}, "a string, comment or line of more than 16 KiB",
				"Write at most 4 KiB in a string, and shorter lines.")
		case last:
			return nil
		}
		pos = tokens[n-1].Range.End
	}
	return nil
}

// resumable returns how many of a window's tokens do not depend on where the window ends: those up to the last line break outside
// quotes, comments and templates. A comment that the window cuts off lexes as a slash and a star.
func resumable(tokens hclsyntax.Tokens) int {
	n, inside := 0, 0
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			inside++
		case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			inside--
		case hclsyntax.TokenSlash:
			if i+1 < len(tokens) && tokens[i+1].Type == hclsyntax.TokenStar {
				return n
			}
		case hclsyntax.TokenNewline, hclsyntax.TokenComment:
			if inside == 0 && t.Bytes[len(t.Bytes)-1] == '\n' {
				n = i + 1
			}
		}
	}
	return n
}

// bounds counts the tokens of a text.
type bounds struct {
	tokens int
	open   []hclsyntax.TokenType // expected closing tokens, innermost last
	chain  [maxNesting + 1]int   // operators since the last separator, at each depth
}

// take counts a token and returns the bound that it breaks.
func (b *bounds) take(t *hclsyntax.Token) *hcl.Diagnostic {
	b.tokens++
	switch {
	case b.tokens > maxTokens:
		return GuardDiag(t.Range, fmt.Sprintf("more than %d words and signs", maxTokens), "Write a smaller plan, or several.")
	case len(t.Bytes) > maxToken && t.Type != hclsyntax.TokenComment:
		return GuardDiag(t.Range, fmt.Sprintf("a word or string of %d bytes", len(t.Bytes)), "Write at most 4 KiB.")
	}
	switch t.Type {
	case hclsyntax.TokenTemplateControl:
		return GuardDiag(t.Range, "%{ } is not supported", `Write a condition as "${a ? b : c}"; for a percent sign before a brace, %%{.`)
	case hclsyntax.TokenNewline:
		if len(b.open) == 0 || b.open[len(b.open)-1] == hclsyntax.TokenCBrace {
			b.chain[len(b.open)] = 0
		}
	case hclsyntax.TokenComma:
		b.chain[len(b.open)] = 0
	case hclsyntax.TokenOBrack, hclsyntax.TokenDot, hclsyntax.TokenQuestion, hclsyntax.TokenBang, hclsyntax.TokenMinus,
		hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent, hclsyntax.TokenAnd,
		hclsyntax.TokenOr, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan,
		hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq:
		if b.chain[len(b.open)]++; b.chain[len(b.open)] > maxChain {
			return GuardDiag(t.Range, fmt.Sprintf("an expression of more than %d operators", maxChain), "Split it into locals.")
		}
	}
	return b.nest(t)
}

// nest keeps the stack of open brackets. It leaves an unmatched closing token to the parser.
func (b *bounds) nest(t *hclsyntax.Token) *hcl.Diagnostic {
	closing, opens := closes[t.Type]
	switch {
	case opens && len(b.open) == maxNesting:
		return GuardDiag(t.Range, fmt.Sprintf("brackets nested more than %d deep", maxNesting), "Split the expression into locals.")
	case opens:
		b.open = append(b.open, closing)
		b.chain[len(b.open)] = 0
	case len(b.open) > 0 && t.Type == b.open[len(b.open)-1]:
		b.open = b.open[:len(b.open)-1]
	}
	return nil
}

// closes are the tokens that close opening ones.
var closes = map[hclsyntax.TokenType]hclsyntax.TokenType{
	hclsyntax.TokenOBrace:         hclsyntax.TokenCBrace,
	hclsyntax.TokenOBrack:         hclsyntax.TokenCBrack,
	hclsyntax.TokenOParen:         hclsyntax.TokenCParen,
	hclsyntax.TokenOQuote:         hclsyntax.TokenCQuote,
	hclsyntax.TokenOHeredoc:       hclsyntax.TokenCHeredoc,
	hclsyntax.TokenTemplateInterp: hclsyntax.TokenTemplateSeqEnd,
}

// Parse reads a text within the bounds of the guard. If the text is not HCL or breaks a bound, it reports that to r and returns nil.
func (r *Reporter) Parse(src []byte, filename string) *hclsyntax.Body {
	if d := Guard(src, filename); d != nil {
		r.Keep(d)
		return nil
	}
	at := hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos}
	parsed, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	if len(diags) > 0 {
		r.Adopt("", at, diags)
		return nil
	}
	body := parsed.Body.(*hclsyntax.Body)
	if diags := CheckSyntax(body); diags.HasErrors() {
		r.Adopt("", at, diags)
		return nil
	}
	return body
}

// CheckSyntax returns what the guard refuses in a parsed text: splats and loops within loops, whose work grows exponentially with their
// depth, grouping, and loop variables that shadow the plan's own names.
func CheckSyntax(node hclsyntax.Node) hcl.Diagnostics {
	var w syntaxWalker
	return hclsyntax.Walk(node, &w)
}

// syntaxWalker is the state of CheckSyntax.
type syntaxWalker struct{ loops int }

// Enter implements hclsyntax.Walker.
func (w *syntaxWalker) Enter(node hclsyntax.Node) hcl.Diagnostics {
	switch n := node.(type) {
	case *hclsyntax.SplatExpr:
		return hcl.Diagnostics{GuardDiag(n.MarkerRange, "[*] is not supported", "Write [for x in LIST : x.NAME].")}
	case *hclsyntax.ForExpr:
		w.loops++
		switch {
		case w.loops > 1:
			return hcl.Diagnostics{GuardDiag(n.OpenRange, "a for within a for", "Write the inner one as a local.")}
		case n.Group:
			return hcl.Diagnostics{GuardDiag(n.OpenRange, "grouping with ... is not supported", "Leave the dots out.")}
		case Reserved(n.KeyVar) || Reserved(n.ValVar):
			return hcl.Diagnostics{GuardDiag(n.OpenRange, "a loop variable named var or local", "Give it another name.")}
		}
	}
	return nil
}

// Exit implements hclsyntax.Walker.
func (w *syntaxWalker) Exit(node hclsyntax.Node) hcl.Diagnostics {
	if _, ok := node.(*hclsyntax.ForExpr); ok {
		w.loops--
	}
	return nil
}

// Reserved reports whether a name is one of the roots of references, var and local.
func Reserved(name string) bool { return name == "var" || name == "local" }

// GuardDiag returns an error at a place, with what to write instead.
func GuardDiag(at hcl.Range, what, write string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: what, Detail: write, Subject: &at}
}
