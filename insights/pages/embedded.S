/* The built files of the page (insights/web/dist), byte by byte. TOCSIN_DIST is the folder with them. */
.section .rodata
.macro file symbol, path
.global \symbol
.global \symbol\()_end
.balign 16
\symbol:
.incbin "\path"
\symbol\()_end:
.byte 0
.endm
file tocsin_index_html, "index.html"
file tocsin_app_js, "app.js"
file tocsin_chunk_js, "chunk.js"
file tocsin_heavy_js, "heavy.js"
file tocsin_app_css, "app.css"
file tocsin_licenses_txt, "LICENSES.txt"
.section .note.GNU-stack,"",%progbits
