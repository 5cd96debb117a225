from tocsin_server import main

main()
