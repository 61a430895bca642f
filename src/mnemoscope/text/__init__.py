"""Text comparison: words, stems, sentences, overlap, abstention, facts."""
