"""The kit of pages: shell, content policy, theme, inline pictures, tables, sections."""
