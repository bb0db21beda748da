// Package recipes looks for ways to end software of others that this project once described: a
// page, a case or a recording may say what crashed or hung, in which version, and not how
// (CONTRIBUTING.md, House rules).
package recipes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recipe is a phrase that must not come back, kept as a sum so that this table does not hold it.
type recipe struct {
	ends  string // what it ends
	words int    // of letters, digits and underscores, in lower case
	first uint16 // FNV-1a of the first word: most words need no sum
	sum   string // the first 12 bytes of SHA-256 of the words with single blanks between them
}

var known = []recipe{
	{"Soft-RoCE, the program that showed it", 4, 0x365f, "7e26f9efacacc8f10a29a0e8"},
	{"Soft-RoCE, the program that showed it", 4, 0x365f, "43b552eaeb0fda47032e25c8"},
	{"Soft-RoCE, the program that showed it", 3, 0x365f, "83405512416da604a34f0179"},
	{"Linux, rdma_rxe (RXE-42)", 2, 0x8727, "8982bab374bc948409a75417"},
	{"Linux, rdma_rxe (RXE-42)", 4, 0xcf6c, "3d6a7cacaac36620f82ddb1f"},
	{"Linux, rdma_rxe (RXE-42)", 2, 0xfee3, "a098b834b8f27d8f5be84537"},
	{"Linux, rdma_rxe (MW-022)", 1, 0xb847, "7c970e819312e168b82b5963"},
	{"librxe (RXE-35)", 4, 0xb782, "81815956bbb7eab4f6250401"},
	{"librxe (RXE-43)", 4, 0xb782, "eef181b75499d02110cd0d6a"},
	{"libmlx5 (MLX-19)", 7, 0xb5a8, "8e13dcac87494d62936c25c3"},
	{"libmlx5 (MLX-19)", 8, 0xea3f, "da2978b13d980aa9ead3e128"},
	{"libmlx5 (XRC-009)", 6, 0xe81c, "2eaa51b1be11f8a763680533"},
	{"libmlx5 (XRC-009)", 9, 0x7bb1, "984ed21acdcff92069e1d61d"},
	{"libmlx5 (XRC-009)", 5, 0x9d0e, "618d817771db9f086ebfb7a8"},
	{"libmlx5 (XRC-025)", 8, 0x7a02, "f61f7be7d75f5c9c85f2ffe2"},
	{"libmlx5 (XRC-025)", 8, 0xb278, "057932d2095ddbd3900d05f9"},
	{"libmlx5 (XRC-025)", 8, 0x21a2, "7aa376eba46a59f6d4368ebe"},
	{"libmlx5 (XRC-025)", 8, 0x21a2, "7921ead87048f781f26b2653"},
	{"libmlx5, scatter to CQE", 4, 0x1de3, "f55aadad27e6016d1c660204"},
	{"perftest 4.5", 3, 0x1911, "5fed86a70aa4891db64f3e0c"},
	{"perftest 4.5", 3, 0x327f, "7e7a8525f72923a473fda720"},
	{"perftest 4.5", 4, 0x36bc, "b0d68a4a0b4091496dc3baf3"},
	{"perftest 4.5", 9, 0x98f7, "dbac437ab16a15f1fb4dff36"},
	{"perftest 6.29", 3, 0x33d9, "265327a3413607b4657eb916"},
	{"perftest 6.29", 8, 0x3431, "fa66aae71eede633149d4ea7"},
}

// word is one of a text: where it lies, and what FNV-1a makes of it.
type word struct {
	from, to int
	first    uint16
}

// wordsOf makes a text lower case, and appends its words to a list.
func wordsOf(text []byte, words []word) []word {
	from, h := -1, uint32(0)
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
			text[i] = c
		}
		if c == '_' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			if from < 0 {
				from, h = i, 2166136261
			}
			h = (h ^ uint32(c)) * 16777619
		} else if from >= 0 {
			words, from = append(words, word{from, i, uint16(h)}), -1
		}
	}
	if from >= 0 {
		words = append(words, word{from, len(text), uint16(h)})
	}
	return words
}

func sum(text []byte, words []word) string {
	h := sha256.New()
	for i, w := range words {
		if i > 0 {
			h.Write([]byte{' '})
		}
		h.Write(text[w.from:w.to])
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

func recipeOf(ends, phrase string) recipe {
	text := []byte(phrase)
	w := wordsOf(text, nil)
	return recipe{ends, len(w), w[0].first, sum(text, w)}
}

// find calls f with each recipe whose words stand in the text, which it makes lower case.
func find(recipes map[uint16][]recipe, text []byte, f func(recipe)) {
	words := wordsOf(text, make([]word, 0, len(text)/6))
	for i, w := range words {
		for _, r := range recipes[w.first] {
			if i+r.words <= len(words) && sum(text, words[i:i+r.words]) == r.sum {
				f(r)
			}
		}
	}
}

// search calls f with each file of a tree, and of the archives in it, that has the words of a
// recipe in its name or its text.
func search(root string, recipes []recipe, f func(path string, r recipe)) error {
	byFirst := map[uint16][]recipe{}
	for _, r := range recipes {
		byFirst[r.first] = append(byFirst[r.first], r)
	}
	look := func(path string, text []byte) {
		found := func(r recipe) { f(path, r) }
		find(byFirst, []byte(path), found)
		if bytes.IndexByte(text, 0) < 0 {
			find(byFirst, text, found)
		}
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() && slices.Contains([]string{".git", "bin", "out", "shared"}, name) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".gz") {
			return archive(name, text, look)
		}
		look(name, text)
		return nil
	})
}

func archive(name string, packed []byte, look func(string, []byte)) error {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(name, ".tar.gz") {
		look(name, text)
		return nil
	}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		part, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		look(name+"/"+h.Name, part)
	}
}

func TestNoRecipes(t *testing.T) {
	if err := search("../..", known, func(path string, r recipe) {
		t.Errorf("%s says how to end %s: what crashed or hung may stay, the way there may not", path, r.ends)
	}); err != nil {
		t.Fatal(err)
	}
}

// The search finds a phrase in a text, in a name and in archives, however it is spaced and broken.
func TestSearchFinds(t *testing.T) {
	dir := t.TempDir()
	var tarred, packed bytes.Buffer
	w := tar.NewWriter(&tarred)
	body := "a --LONG\n\t// \"summer of_1914\"."
	if err := w.WriteHeader(&tar.Header{Name: "part.txt", Size: int64(len(body)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(tarred.Bytes())
	_ = z.Close()
	for name, text := range map[string]string{"text.md": "It was a long,\nsummer  of_1914", "long-summer-of_1914.c": "", "whole.tar.gz": packed.String(), "other.md": "a long summer of 1914"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	if err := search(dir, []recipe{recipeOf("a peace", "long summer of_1914")}, func(path string, _ recipe) { got = append(got, path) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"long-summer-of_1914.c", "text.md", "whole.tar.gz/part.txt"}; !slices.Equal(got, want) {
		t.Errorf("found in %v, want %v", got, want)
	}
}
